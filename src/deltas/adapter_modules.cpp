#include "adapter_modules.h"

#include <torch/types.h>

#include <algorithm>
#include <map>

#include "adapter_factors.h"
#include "lancet/checkpoint/module_name.h"
#include "lancet/core/strings.h"
#include "lancet/deltas/adapter.h"

namespace lancet {
namespace {

bool has_experts(const WeightSpec& spec) { return spec.experts > 1; }

/// Returns the number of groups of a module's outputs, in each of which the weight has a part. An expert's module has
/// only this weight.
int64_t groups_of(const WeightSpec& spec) { return has_all_experts(spec.stored.layout) ? 1 : spec.stored.groups; }

/// Returns a view [groups, the part's outputs in each, r] of a module's left factor.
Tensor rows_of_part(const LinearModule& module, const ModulePart& part, const Tensor& left_OR) {
  const int64_t groups = groups_of(part.spec);
  const int64_t size = has_experts(part.spec) ? module.n_outputs : part.spec.shape.front();
  return left_OR.unflatten(0, {groups, -1}).narrow(1, part.spec.stored.begin, size / groups);
}

/// Returns the rows or columns of the whole weight that belong to the part.
Tensor narrowed(const ModulePart& part, const Tensor& factor, int64_t axis) {
  const int64_t size = factor.size(axis) / part.spec.experts;
  return factor.narrow(axis, part.expert * size, size);
}

/// The changes of each weight, one for each module in which it is stored.
using PartsOfWeights = std::map<WeightId, std::vector<WeightDelta>>;

void add_parts(const LinearModule& module, const LowRankDelta& pair, PartsOfWeights& changes) {
  for (const ModulePart& part : module.parts) {
    const LowRankDelta own = without_zeros({left_of_part(module, part, pair.left_OR), pair.right_RI});
    if (own.left_OR.size(1) > 0) changes[part.spec.id].emplace_back(in_weight(part, own));
  }
}

/// Returns the parameter of the class in transformers (5; always `experts.down_proj`) that has a tensor with all down
/// projections. Granite's files also have it as `output_linear.weight`.
std::string parameter_of_one_tensor(const std::string& tensor) {
  const std::string module(module_of(tensor));
  return module == tensor ? tensor : cat(module.substr(0, module.rfind('.')), ".experts.down_proj");
}

/// Returns the parameter of experts with separate tensors that PEFT must be told; empty if PEFT finds it by the names
/// in the files.
std::string parameter_of_tensors(const ModelConfig& config, const WeightSpec& spec) {
  std::string parameter(config.family->experts_parameter);
  if (!has_experts(spec) || spec.id.kind != WeightKind::kDown || parameter.empty()) return "";
  return parameter.replace(parameter.find("{}"), 2, std::to_string(spec.id.layer));
}

void add_experts(const WeightSpec& spec, std::vector<LinearModule>& modules) {
  if (spec.id.kind != WeightKind::kDown) return;
  const std::string& tensor = spec.stored.tensors.front();
  for (int64_t expert = 0; expert < spec.experts; ++expert)
    modules.push_back({.name = cat(module_of(tensor), "[", expert, "]"),
                       .n_outputs = spec.shape[0],
                       .n_inputs = spec.shape[1] / spec.experts,
                       .parts = {{spec, expert}},
                       .parameter = parameter_of_one_tensor(tensor)});
}

/// Joins the changes of experts that take more memory as factors than as one matrix.
void join_experts(const WeightSpec& spec, std::vector<WeightDelta>& deltas) {
  int64_t directions = 0;
  for (const WeightDelta& delta : deltas) directions += std::get<LowRankDelta>(delta).left_OR.size(1);
  if (deltas.size() == 1 || directions < std::min(spec.shape[0], spec.shape[1])) return;
  Tensor sum = to_dense(deltas.front());
  for (size_t i = 1; i < deltas.size(); ++i) sum += to_dense(deltas[i]);
  deltas = {DenseDelta{sum}};
}

}  // namespace

std::vector<LinearModule> linear_modules(const ModelConfig& config) {
  std::vector<LinearModule> modules;
  std::map<std::string, size_t> place_of;
  for (const WeightSpec& spec : weight_table(config)) {
    if (spec.shape.size() != 2) continue;
    if (has_all_experts(spec.stored.layout)) {
      add_experts(spec, modules);
      continue;
    }
    for (size_t expert = 0; expert < spec.stored.tensors.size(); ++expert) {
      const std::string name(module_of(spec.stored.tensors[expert]));
      const auto [at, is_new] = place_of.emplace(name, modules.size());
      if (is_new) {
        const bool columns = spec.stored.layout == Layout::kColumns;
        modules.push_back({.name = name,
                           .n_outputs = spec.stored.shape[columns ? 1 : 0],
                           .n_inputs = spec.stored.shape[columns ? 0 : 1],
                           .parameter = parameter_of_tensors(config, spec)});
      }
      modules[at->second].parts.push_back({spec, static_cast<int64_t>(expert)});
    }
  }
  return modules;
}

std::string why_no_lora(const ModelConfig& config, const WeightSpec& spec) {
  if (spec.shape.size() != 2) return "it is no matrix";
  if (has_all_experts(spec.stored.layout)) {
    if (config.quantised) return "it is in a tensor of all experts of a quantised model, which PEFT does not change";
    return spec.id.kind == WeightKind::kDown ? "" : "it shares a tensor of all experts with another weight";
  }
  if (spec.id.kind == WeightKind::kEmbedding || spec.id.kind == WeightKind::kPositions)
    return "it is a table of embeddings";
  if (spec.id.kind == WeightKind::kHead && spec.stored.tensors.front() != "lm_head.weight")
    return "versions of transformers have it under two names";
  if (spec.id.kind == WeightKind::kMixerOut && config.family->refuses_mixer_lora)
    return cat("PEFT refuses the mixers' output projections of ", config.family->name);
  if (spec.id.kind == WeightKind::kMixerOut && config.recurrence.tiled_values)
    return "the GGUF file has its inputs in another order than transformers: take lancet export checkpoint's folder";
  if (config.experts.count == 0) return "";
  const LayerPart part = role_of(spec.id.kind).part;
  const bool in_mlp = part == LayerPart::kMlpInput || part == LayerPart::kMlpOutput;
  if (spec.id.kind == WeightKind::kRouter) return "PEFT takes a router for experts";
  if (in_mlp && !has_experts(spec)) return "PEFT takes the dense layers of a model with experts for experts";
  if (part == LayerPart::kMlpInput && !config.family->experts_parameter.empty())
    return cat("PEFT does not find gates and ups of experts in ", config.family->name);
  return "";
}

std::string why_not_in_adapter(const ModelConfig& config, WeightId id) {
  return why_no_lora(config, weight_spec(config, id));
}

Tensor left_in_module(const LinearModule& module, const ModulePart& part, const Tensor& left_OR) {
  const bool by_rows = has_experts(part.spec) && part.spec.parts_axis() == 0;
  const Tensor own = by_rows ? narrowed(part, left_OR, 0) : left_OR;
  if (own.size(0) == module.n_outputs && groups_of(part.spec) == 1) return own;
  Tensor left = torch::zeros({module.n_outputs, own.size(1)}, own.options());
  rows_of_part(module, part, left).copy_(own.unflatten(0, {groups_of(part.spec), -1}));
  return left;
}

Tensor right_in_module(const ModulePart& part, const Tensor& right_RI) {
  return has_experts(part.spec) && part.spec.parts_axis() == 1 ? narrowed(part, right_RI, 1) : right_RI;
}

Tensor left_of_part(const LinearModule& module, const ModulePart& part, const Tensor& left_OR) {
  return rows_of_part(module, part, left_OR).flatten(0, 1);
}

LowRankDelta in_weight(const ModulePart& part, const LowRankDelta& of_part) {
  if (!has_experts(part.spec)) return of_part;
  const int64_t axis = part.spec.parts_axis();
  const Tensor& own = axis == 0 ? of_part.left_OR : of_part.right_RI;
  std::vector<int64_t> shape = own.sizes().vec();
  shape[static_cast<size_t>(axis)] = part.spec.shape[static_cast<size_t>(axis)];
  Tensor whole = torch::zeros(shape, own.options());
  narrowed(part, whole, axis).copy_(own);
  return axis == 0 ? LowRankDelta{whole, of_part.right_RI} : LowRankDelta{of_part.left_OR, whole};
}

std::vector<WeightChanges> changes_of(const ModelConfig& config, std::span<const ModulePair> pairs) {
  PartsOfWeights parts;
  for (const ModulePair& pair : pairs) add_parts(*pair.module, pair.factors, parts);
  std::vector<WeightChanges> changes;
  for (const WeightSpec& spec : weight_table(config)) {
    const auto found = parts.find(spec.id);
    if (found == parts.end()) continue;
    join_experts(spec, found->second);
    changes.push_back({spec.id, std::move(found->second)});
  }
  return changes;
}

}  // namespace lancet
