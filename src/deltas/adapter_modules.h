// Finds the module of PEFT to which a weight, or an expert's part of it, belongs, and its place in this module.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/deltas/stream_state.h"

namespace lancet {

/// A weight in one of the tensors in which it is stored.
struct ModulePart {
  WeightSpec spec;
  /// The index of the tensor among the weight's tensors, or of the expert in its tensor of all experts.
  int64_t expert = 0;
};

/// A module: one stored tensor, or one expert's part of a tensor of all experts.
struct LinearModule {
  std::string name;  ///< name of the stored tensor without ".weight"; with the expert's number if the tensor has all
                     ///< experts: "down_proj[3]"
  int64_t n_outputs = 0;  ///< number of outputs of the linear layer, for any layout
  int64_t n_inputs = 0;
  std::vector<ModulePart> parts = {};
  /// The parameter of all experts by its name in transformers: "model.layers.3.mlp.experts.down_proj"; empty: for PEFT
  /// it is a module.
  std::string parameter = {};

  /// Returns the number of experts whose factors are together in one pair of the file.
  int64_t stacked() const { return parameter.empty() ? 1 : parts.front().spec.experts; }
  /// Returns the name of the pair in the file: the module, or the module that has the parameter.
  std::string name_in_file() const { return parameter.empty() ? name : parameter.substr(0, parameter.rfind('.')); }
};

/// Returns every matrix of the model in model order, except gates and ups of experts in one tensor, which no edit
/// changes.
std::vector<LinearModule> linear_modules(const ModelConfig& config);

/// Returns why PEFT cannot load a change of the weight as LoRA; empty if it can.
std::string why_no_lora(const ModelConfig& config, const WeightSpec& spec);

/// Returns the part's rows of a weight's left factor [out, r] as the rows [n, r] of the module's outputs, with zeros
/// elsewhere.
Tensor left_in_module(const LinearModule& module, const ModulePart& part, const Tensor& left_OR);
/// Returns the part's columns of a weight's right factor [r, in].
Tensor right_in_module(const ModulePart& part, const Tensor& right_RI);

/// Returns the part's rows of a module's left factor: [outputs of the part, r].
Tensor left_of_part(const LinearModule& module, const ModulePart& part, const Tensor& left_OR);
/// The factors of a module: left [outputs, r] and right [r, inputs].
struct ModulePair {
  const LinearModule* module = nullptr;
  LowRankDelta factors = {};
};
/// Returns the changes that the pairs make, for each weight in model order.
std::vector<WeightChanges> changes_of(const ModelConfig& config, std::span<const ModulePair> pairs);

/// Returns the factors of the whole weight from those of the part, with zeros for other experts.
LowRankDelta in_weight(const ModulePart& part, const LowRankDelta& of_part);

}  // namespace lancet
