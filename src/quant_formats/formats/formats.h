// Quantised formats, as far as files and settings tell them: what programs write into config.json, and which tensors
// they write beside it. A format is a file here and a row of kQuantFormats; what torch has to compute of it is in the
// file of the same name in src/quant/formats.
#pragma once

#include "parts/excluded_modules.h"
#include "parts/module_rules.h"
#include "parts/part_finder.h"
#include "parts/scheme_keys.h"

namespace lancet {

/// A `quant_method` of config.json.
struct QuantMethod {
  std::string_view name;
  /// Makes rules of the settings. Settings that are not understood become problems of `keys`.
  ModuleRules (*read)(SchemeKeys& keys);
  /// Names modules as not quantised, in settings that `read` understands. Throws: as add_to_list().
  void (*exclude)(OrderedJson& settings, const ExcludedModules& excluded);
  std::string_view other_name = {};                   ///< that some files have in its place
  std::span<const std::string_view> implied_by = {};  ///< keys in files from before there was a `quant_method`
  /// QuantScheme::unit_of(), of a module. nullptr: it is the module.
  std::string_view (*unit)(std::string_view module) = nullptr;
};

/// How a matrix lies in a file's tensors.
struct TensorLayout {
  MatrixPacking packing;
  std::string_view meaning;  ///< words for messages: "GPTQ: .qweight with .qzeros and .scales"
  /// What only such a matrix has after its module's name: any of these tensors shows it. Empty: the codes have the
  /// name of the weight, and their type shows it.
  std::span<const std::string_view> marks = {};
  std::optional<DType> type = {};  ///< type of the tensor with the weight's own name
  /// Finds the tensors of `spec`, which has name, size (1 or more, products fit in 64 bits) and code, and gets its
  /// parts; and what only the file says of its code. What is missing or does not fit becomes a problem of `finder`.
  void (*find)(PartFinder& finder, PackedSpec& spec);
  /// PackedMatrix::bytes() of such a matrix, as packed_bytes() promises it.
  int64_t (*bytes)(const MatrixCode& code, int64_t rows, int64_t columns);
  bool holds_experts = false;  ///< the tensors are those of all experts, each with a matrix of the spec's size
};

struct QuantFormat {
  std::span<const QuantMethod> methods;
  std::span<const TensorLayout> layouts;
};

extern const QuantFormat kBitsAndBytesFormat;
extern const QuantFormat kGptqFormat;
extern const QuantFormat kAwqFormat;
extern const QuantFormat kFloat8Format;
extern const QuantFormat kCompressedTensorsFormat;
extern const QuantFormat kMxfp4Format;
extern const QuantFormat kGgufFormat;

/// All formats, in the order in which messages name their methods.
inline constexpr const QuantFormat* kQuantFormats[] = {
    &kBitsAndBytesFormat,      &kGptqFormat,  &kAwqFormat,  &kFloat8Format,
    &kCompressedTensorsFormat, &kMxfp4Format, &kGgufFormat,
};

// ---- What several formats have in common

/// Adds a rule for each text of a list; an expression that cannot be read is a problem of the key.
void add_rules(SchemeKeys& keys, std::string_view key, RuleText kind, std::optional<MatrixCode> code,
               ModuleRules& rules);

/// Shapes that scales of such blocks have in files, where they lie as the matrix does.
std::vector<std::vector<int64_t>> scale_shapes(const PackedSpec& spec, const ScaleBlock& block);

/// TensorLayout::bytes of codes, of scales in a grid, of 16 or of 32 bits, and of what goes with them: zero points, an
/// order of columns, a table of pairs of 4 bits.
int64_t bytes_with_half_scales(const MatrixCode& code, int64_t rows, int64_t columns);
int64_t bytes_with_float_scales(const MatrixCode& code, int64_t rows, int64_t columns);

}  // namespace lancet
