// How a checkpoint's matrices are quantised, as its config.json says it: by which method, and of each module whether
// and how. No tensor is looked at here; packed_spec.h does that.
// Sources of the formats: transformers, utils/quantization_config.py; GPTQModel, quantization/config.py;
// compressed-tensors, quantization/quant_config.py.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/quant_formats/matrix_code.h"

namespace lancet {

class ModuleRules;

class QuantScheme {
 public:
  /// Reads config.json's text; nullopt: it says that nothing is quantised. `ignored_keys`: keys that may stand there
  /// unknown. `where`: what messages begin with. Throws: CheckpointError with every method and setting that is not
  /// understood.
  static std::optional<QuantScheme> parse(std::string_view config_json, std::span<const std::string> ignored_keys,
                                          std::string_view where);

  /// "gptq", as config.json has it.
  const std::string& method() const { return method_; }
  /// How a module's weight ("model.layers.0.mlp.down_proj") is quantised; nullopt: it is not, by the configuration's
  /// lists. Those speak of linear layers: whether an embedding or a head is quantised, only the tensors tell.
  std::optional<MatrixCode> code_of(std::string_view module) const;
  /// Returns the code where tensors show that the weight is quantised, whatever lists say.
  std::optional<MatrixCode> code_of_packed(std::string_view module) const;
  /// Name of the module around a weight's `tensor` that the method has quantised as a whole, or not at all: as a rule
  /// the weight's own.
  std::string unit_of(std::string_view tensor) const;
  /// Whether a tensor is for computing with quantised activations, which lancet leaves in full precision: scales of
  /// inputs, outputs, and of kept keys and values.
  bool leaves_aside(std::string_view tensor) const;
  /// Names that such tensors of a module's own inputs and outputs can have. Those of kept keys and values are not among
  /// them: they mean the same where the module is not quantised.
  std::vector<std::string> aside_names(std::string_view module) const;

 private:
  QuantScheme(std::string method, std::shared_ptr<const ModuleRules> rules)
      : method_(std::move(method)), rules_(std::move(rules)) {}

  std::string method_;
  std::shared_ptr<const ModuleRules> rules_;
};

}  // namespace lancet
