// Which module of PEFT a weight, or an expert's part of it, belongs to, and where in it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/deltas/stream_state.h"

namespace lancet {

/// A weight in one of the tensors that it is stored in.
struct ModulePart {
  WeightSpec spec;
  int64_t expert = 0;  ///< the place of the tensor among the weight's, or of the expert in its one tensor
};

/// A module: one stored tensor, or one expert's part of a tensor of all.
struct LinearModule {
  std::string name;       ///< the stored tensor's, less ".weight"; of experts in one its number: "down_proj[3]"
  int64_t n_outputs = 0;  ///< outputs of a linear layer, whatever the layout
  int64_t n_inputs = 0;
  std::vector<ModulePart> parts = {};
  /// The parameter of all experts, by transformers' name: "model.layers.3.mlp.experts.down_proj"; empty: PEFT has it as
  /// a module.
  std::string parameter = {};

  /// Experts whose factors lie in one pair of the file.
  int64_t stacked() const { return parameter.empty() ? 1 : parts.front().spec.experts; }
  /// What the file has the pair under: the module, or the one that has the parameter.
  std::string name_in_file() const { return parameter.empty() ? name : parameter.substr(0, parameter.rfind('.')); }
};

/// Every matrix of the model, in model order, but gates and ups of experts in one tensor, which no edit changes.
std::vector<LinearModule> linear_modules(const ModelConfig& config);

/// Why PEFT cannot load a change of the weight as LoRA; empty: it can.
std::string why_no_lora(const ModelConfig& config, const WeightSpec& spec);

/// The part's [n, r] of a weight's left factor [out, r], in the rows of the module's outputs, zeros elsewhere.
Tensor left_in_module(const LinearModule& module, const ModulePart& part, const Tensor& left_OR);
/// The part's columns of a weight's right factor [r, in].
Tensor right_in_module(const ModulePart& part, const Tensor& right_RI);

/// The part's rows of a module's left factor: [outputs of the part, r].
Tensor left_of_part(const LinearModule& module, const ModulePart& part, const Tensor& left_OR);
/// A module's factors: left [outputs, r] and right [r, inputs].
struct ModulePair {
  const LinearModule* module = nullptr;
  LowRankDelta factors = {};
};
/// What the pairs change, weight by weight in model order.
std::vector<WeightChanges> changes_of(const ModelConfig& config, std::span<const ModulePair> pairs);

/// Left and right factors of the whole weight, of the part's: zeros for other experts.
LowRankDelta in_weight(const ModulePart& part, const LowRankDelta& of_part);

}  // namespace lancet
