#include "lancet/deltas/editor_state.h"

#include <torch/types.h>

#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

constexpr SealedFormat kStateFormat{"lancet-state-2", /*unsealed=*/"lancet-state-1"};

void check_fact(const SealedFile& file, std::string_view what, const std::string& fact, const std::string& expected) {
  if (file.fact(fact) != expected)
    throw ConfigError(cat(file.path().string(), ": the state of another ", what, ": expected ", expected, ", got ",
                          file.fact(fact), ": go on with the job that wrote it, or without a state"));
}

/// Returns the tensor as whole numbers, which compare by their bits.
Tensor bits_of(const Tensor& tensor) {
  return tensor.view(tensor.element_size() == 8 ? at::kLong : tensor.element_size() == 4 ? at::kInt : at::kShort);
}

bool has_same_bits(const Tensor& one, const Tensor& other) {
  return one.scalar_type() == other.scalar_type() && one.sizes() == other.sizes() && bits_of(one).equal(bits_of(other));
}

bool begins_with(const Tensor& tensor, const Tensor& columns) {
  return tensor.dim() == 2 && columns.dim() == 2 && tensor.size(0) == columns.size(0) &&
         tensor.size(1) > columns.size(1) && has_same_bits(tensor.narrow(1, 0, columns.size(1)), columns);
}

}  // namespace

void check_owner(const SealedFile& file, const StateOwner& owner) {
  check_fact(file, "method", "method", owner.method);
  check_fact(file, "model", "base_hash", owner.base_hash);
  if (file.content_hash().empty())
    log_warning(
        cat(file.path().string(), ": written by an earlier version, without a hash: damage would go unnoticed"));
  else if (file.fact("beside") != owner.beside)
    throw CheckpointError(cat(file.path().string(), ": not of the files beside it: the folder was mixed up"));
}

EditorState load_state(const std::filesystem::path& path, const StateOwner& owner) {
  const SealedFile file = SealedFile::open(path, kStateFormat);
  check_owner(file, owner);
  const std::optional<int64_t> edits = parse_whole_number(file.fact("edits"));
  if (!edits) throw CheckpointError(cat(path.string(), ": edits: expected a number, got '", file.fact("edits"), "'"));
  const NamedTensors tensors = load_tensors(file);
  return {{tensors.begin(), tensors.end()}, *edits};
}

Tensor columns_of(const EditorState& state, const std::string& name) {
  const auto found = state.tensors.find(name);
  return found == state.tensors.end() ? Tensor() : found->second;
}

Tensor joined_columns(const Tensor& earlier_FM, const Tensor& fresh_FN) {
  if (!earlier_FM.defined() || !fresh_FN.defined()) return earlier_FM.defined() ? earlier_FM : fresh_FN;
  return torch::cat({earlier_FM, fresh_FN}, 1);
}

void append_columns(EditorState& state, const std::string& name, const Tensor& columns_FN) {
  const torch::NoGradGuard no_grad;
  Tensor all_FM = joined_columns(columns_of(state, name), columns_FN.to(Placement::host()));
  if (all_FM.size(1) > 2 * all_FM.size(0)) {
    // H^T = Q T, so H H^T = T^T T
    all_FM = std::get<1>(at::linalg_qr(all_FM.t(), "r")).t();
  }
  state.tensors[name] = all_FM.contiguous();
}

StateStep step_between(const EditorState& before, const EditorState& after) {
  StateStep step{.edits = after.edits - before.edits};
  for (const auto& [name, tensor] : after.tensors) {
    const Tensor earlier = columns_of(before, name);
    if (earlier.defined() && has_same_bits(earlier, tensor)) continue;
    if (earlier.defined() && begins_with(tensor, earlier))
      step.appended[name] = tensor.narrow(1, earlier.size(1), tensor.size(1) - earlier.size(1)).contiguous();
    else
      step.replaced[name] = tensor;
  }
  return step;
}

void advance(EditorState& state, const StateStep& step) {
  const torch::NoGradGuard no_grad;
  for (const auto& [name, columns] : step.appended) {
    Tensor& earlier = state.tensors[name];
    if (!earlier.defined() || earlier.dim() != 2 || columns.dim() != 2 || earlier.size(0) != columns.size(0) ||
        earlier.scalar_type() != columns.scalar_type())
      throw CheckpointError(cat(name, ": expected a state that these columns go on from"));
    earlier = torch::cat({earlier, columns}, 1);
  }
  for (const auto& [name, tensor] : step.replaced) state.tensors[name] = tensor;
  state.edits += step.edits;
}

}  // namespace lancet
