// Quantised formats, as far as files and settings describe them: what programs write into config.json, and which
// tensors they write. A format is a file here and a row of kQuantFormats. What torch computes for it is in the file of
// the same name in src/quant/formats.
#pragma once

#include "parts/excluded_modules.h"
#include "parts/module_rules.h"
#include "parts/part_finder.h"
#include "parts/scheme_keys.h"

namespace lancet {

/// A `quant_method` of config.json.
struct QuantMethod {
  std::string_view name;
  /// Makes rules from the settings. Settings that are not understood become problems of `keys`.
  ModuleRules (*read)(SchemeKeys& keys);
  /// Adds modules to the list of those that are not quantised, in settings that `read` understands. Throws: as
  /// add_to_list().
  void (*exclude)(OrderedJson& settings, const ExcludedModules& excluded);
  std::string_view other_name = {};                   ///< another name that some files use
  std::span<const std::string_view> implied_by = {};  ///< keys that show the method in files without a `quant_method`
  /// Returns QuantScheme::unit_of() of a module. nullptr: each module is its own unit.
  std::string_view (*unit)(std::string_view module) = nullptr;
};

/// How a file stores a matrix in tensors.
struct TensorLayout {
  MatrixPacking packing;
  std::string_view meaning;  ///< description for messages: "GPTQ: .qweight with .qzeros and .scales"
  /// Ends of names, after that of the module, which only such a matrix has. Any of these tensors shows the layout.
  /// Empty: the codes have the name of the weight, and their type shows the layout.
  std::span<const std::string_view> marks = {};
  std::optional<DType> type = {};  ///< type of the tensor with the weight's own name
  /// Finds the tensors of `spec`, whose name, size (at least 1; products fit in 64 bits) and code are given, and fills
  /// its parts, and what only the file says about its code. What is missing or does not fit becomes a problem of
  /// `finder`.
  void (*find)(PartFinder& finder, PackedSpec& spec);
  /// Returns PackedMatrix::bytes() for such a matrix, as packed_bytes() promises.
  int64_t (*bytes)(const MatrixCode& code, int64_t rows, int64_t columns);
  bool holds_experts = false;  ///< each tensor has the data of all experts, whose matrices have the spec's size
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

// ---- Shared by several formats ----

/// Adds a rule for each text of a list. An expression that cannot be read is a problem of the key.
void add_rules(SchemeKeys& keys, std::string_view key, RuleText kind, std::optional<MatrixCode> code,
               ModuleRules& rules);

/// Returns the shapes that scales of such blocks can have in files, with rows and columns as in the matrix.
std::vector<std::vector<int64_t>> scale_shapes(const PackedSpec& spec, const ScaleBlock& block);

/// Values for TensorLayout::bytes: for codes with scales in a grid (of 16 or of 32 bits), and with what belongs to
/// them: zero points, an order of columns, a table of pairs of 4 bits.
int64_t bytes_with_half_scales(const MatrixCode& code, int64_t rows, int64_t columns);
int64_t bytes_with_float_scales(const MatrixCode& code, int64_t rows, int64_t columns);

}  // namespace lancet
