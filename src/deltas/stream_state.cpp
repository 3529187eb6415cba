#include "lancet/deltas/stream_state.h"

#include <torch/types.h>
#include <algorithm>
#include <map>

#include "delta_shape.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"

namespace lancet {
namespace {

/// Collective: root's tensors on every rank's host.
NamedTensors share(NamedTensors named, Communicator& communicator) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named) names.push_back(name);
  names = broadcast_texts(communicator, names);
  named.resize(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    named[i] = {names[i], communicator.broadcast(named[i].second, Placement::host())};
  return named;
}

}  // namespace

bool has_columns(const std::vector<WeightChanges>& changes) {
  return std::ranges::any_of(changes, [](const WeightChanges& weight) {
    return std::ranges::any_of(weight.deltas,
                               [](const WeightDelta& delta) { return std::holds_alternative<LowRankDelta>(delta); });
  });
}

void share_stream(StreamState& stream, const ModelConfig& config, Communicator& communicator) {
  if (communicator.size() == 1) return;
  stream.editor.edits = broadcast_numbers(communicator, {stream.editor.edits}).front();
  const NamedTensors state = share({stream.editor.tensors.begin(), stream.editor.tensors.end()}, communicator);
  stream.editor.tensors = {state.begin(), state.end()};
  stream.changes = to_changes(share(to_named(stream.changes, config), communicator), config);
}

std::vector<WeightChanges> changes_of(std::span<const WeightTransaction::Entry> entries) {
  std::vector<WeightChanges> changes;
  for (const WeightTransaction::Entry& entry : entries) changes.push_back({entry.id, entry.deltas});
  return changes;
}

void restore_changes(const std::vector<WeightChanges>& changes, const CausalLM& model, WeightTransaction& transaction) {
  for (const WeightChanges& weight : changes) {
    const at::Device device = model.placement().solve_device(weight.id.layer);
    for (const WeightDelta& delta : weight.deltas) transaction.apply(weight.id, moved_to(delta, device));
  }
}

namespace {

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

NamedTensors to_named(const std::vector<WeightChanges>& changes, const ModelConfig& config) {
  NamedTensors named;
  for (const WeightChanges& weight : changes) {
    for (size_t i = 0; i < weight.deltas.size(); ++i) {
      const std::string name = cat(weight_name(config, weight.id), "/", i, "/");
      if (const auto* low_rank = std::get_if<LowRankDelta>(&weight.deltas[i])) {
        named.emplace_back(name + "left", low_rank->left_OR);
        named.emplace_back(name + "right", low_rank->right_RI);
      } else {
        named.emplace_back(name + "full", std::get<DenseDelta>(weight.deltas[i]).full_OI);
      }
    }
  }
  return named;
}

/// The inverse of to_named(). Throws: CheckpointError for tensors that it cannot have made.
std::vector<WeightChanges> to_changes(const NamedTensors& named, const ModelConfig& config) {
  std::map<std::string, WeightSpec> specs;
  for (const WeightSpec& spec : weight_table(config)) specs[spec.name] = spec;
  std::vector<WeightChanges> changes;
  const auto refuse = [](const std::string& name) {
    throw CheckpointError(
        cat(name, ": expected a change of one of the model's weights, of its shape, complete and in its order"));
  };
  for (size_t i = 0; i < named.size(); ++i) {
    const auto& [name, tensor] = named[i];
    const std::vector<std::string> parts = split(name, '/');
    if (parts.size() != 3 || !specs.contains(parts[0])) refuse(name);
    const WeightSpec& spec = specs.at(parts[0]);
    if (changes.empty() || changes.back().id != spec.id) changes.push_back({spec.id, {}});
    std::vector<WeightDelta>& deltas = changes.back().deltas;
    if (parts[1] != std::to_string(deltas.size())) refuse(name);
    if (parts[2] == "full") {
      deltas.emplace_back(DenseDelta{tensor});
    } else if (parts[2] == "left" && i + 1 < named.size() &&
               named[i + 1].first == cat(parts[0], "/", parts[1], "/right")) {
      deltas.emplace_back(LowRankDelta{tensor, named[++i].second});
    } else {
      refuse(name);
    }
    if (!fits_weight(deltas.back(), spec.shape)) refuse(name);
  }
  return changes;
}

}  // namespace lancet
