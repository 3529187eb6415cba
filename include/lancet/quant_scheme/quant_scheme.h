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

namespace lancet {

/// Layouts of a matrix in files.
enum class MatrixPacking {
  kBitsAndBytes4,     ///< places in a table of 16 numbers, two a byte; scales of blocks of the flattened matrix
  kBitsAndBytes8,     ///< whole numbers of a byte; a scale a row
  kGptq,              ///< whole numbers without a sign, packed along the inputs
  kAwq,               ///< the same of 4 bits, packed along the outputs in an order of its own
  kFloat8,            ///< E4M3
  kCompressedPacked,  ///< compressed-tensors: whole numbers packed along the inputs, row by row
  kCompressedInt8     ///< compressed-tensors: whole numbers of a byte
};

/// Neighbours in a matrix [out, in] that share a scale; 0: all there are in that direction.
struct ScaleBlock {
  int64_t rows = 1;
  int64_t columns = 0;
  bool operator==(const ScaleBlock&) const = default;
};

/// What is subtracted from a whole number before it is scaled.
enum class ZeroPoints {
  kNone,          ///< nothing but the half of the range, where numbers are stored without a sign
  kStored,        ///< a number for each scale
  kStoredLessOne  ///< likewise, stored less one: GPTQ's first format
};

/// How one module's weight is quantised.
struct MatrixCode {
  MatrixPacking packing = MatrixPacking::kFloat8;
  int64_t bits = 8;
  ScaleBlock block = {};  ///< kBitsAndBytes4: what the file's own record says counts
  ZeroPoints zeros = ZeroPoints::kNone;
  bool symmetric = true;
  bool ordered = false;        ///< the file has to say which group each column belongs to
  bool nested = false;         ///< kBitsAndBytes4: the scales are quantised too
  bool in_scale_type = false;  ///< kFloat8: computed in the scales' type, rather than in f32
  bool operator==(const MatrixCode&) const = default;
};

class ModuleRules;

class QuantScheme {
 public:
  /// Of config.json's text; nullopt: it says that nothing is quantised. `ignored_keys`: keys that may stand there
  /// unknown. `where`: what messages begin with. Throws: CheckpointError with every method and setting that is not
  /// understood.
  static std::optional<QuantScheme> parse(std::string_view config_json, std::span<const std::string> ignored_keys,
                                          std::string_view where);

  /// "gptq", as config.json has it.
  const std::string& method() const { return method_; }
  /// How a module's weight ("model.layers.0.mlp.down_proj") is quantised; nullopt: it is not, by the configuration's
  /// lists. Those speak of linear layers: whether an embedding or a head is quantised, only the tensors tell.
  std::optional<MatrixCode> code_of(std::string_view module) const;
  /// The same where tensors show that the weight is quantised, whatever lists say.
  std::optional<MatrixCode> code_of_packed(std::string_view module) const;
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
