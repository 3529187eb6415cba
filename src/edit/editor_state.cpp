#include "lancet/edit/editor_state.h"

#include <torch/types.h>

#include <optional>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

constexpr std::string_view kFormat = "lancet-state-1";

std::string fact(const SafetensorsReader& file, const std::string& name) {
  const auto found = file.metadata().find(name);
  return found == file.metadata().end() ? "" : found->second;
}

void check_owner(const std::filesystem::path& path, std::string_view what, const std::string& found,
                 const std::string& expected) {
  if (found != expected)
    throw ConfigError(cat(path.string(), ": the state of another ", what, ": expected ", expected, ", got ", found,
                          ": go on with the job that wrote it, or without a state"));
}

}  // namespace

void save_state(const std::filesystem::path& path, const EditorState& state, const StateOwner& owner) {
  write_tensors(path, {state.tensors.begin(), state.tensors.end()},
                {{"format", std::string(kFormat)},
                 {"method", owner.method},
                 {"base_hash", owner.base_hash},
                 {"edits", std::to_string(state.edits)}});
}

EditorState load_state(const std::filesystem::path& path, const StateOwner& owner) {
  const SafetensorsReader file = SafetensorsReader::open(path);
  EditorState state;
  const std::optional<int64_t> edits = parse_whole_number(fact(file, "edits"));
  if (fact(file, "format") != kFormat || !edits)
    throw CheckpointError(cat(path.string(), ": expected the state of an editor (", kFormat, "), got another file"));
  state.edits = *edits;
  check_owner(path, "method", fact(file, "method"), owner.method);
  check_owner(path, "model", fact(file, "base_hash"), owner.base_hash);
  // cloned: the file goes away before the state does
  for (const TensorInfo& info : file.tensors()) state.tensors[info.name] = to_tensor(file.view(info.name)).clone();
  return state;
}

Tensor columns_of(const EditorState& state, const std::string& name) {
  const auto found = state.tensors.find(name);
  return found == state.tensors.end() ? Tensor() : found->second;
}

void append_columns(EditorState& state, const std::string& name, const Tensor& columns_FN) {
  const torch::NoGradGuard no_grad;
  const Tensor fresh_FN = columns_FN.to(Placement::host());
  const Tensor earlier_FM = columns_of(state, name);
  Tensor all_FM = earlier_FM.defined() ? torch::cat({earlier_FM, fresh_FN}, 1) : fresh_FN;
  if (all_FM.size(1) > 2 * all_FM.size(0)) {
    // H^T = Q T, so H H^T = T^T T
    all_FM = std::get<1>(at::linalg_qr(all_FM.t(), "r")).t();
  }
  state.tensors[name] = all_FM.contiguous();
}

}  // namespace lancet
