#include "lancet/quant_formats/find_packed.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "formats/formats.h"
#include "lancet/checkpoint/module_name.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// The largest number of rows and columns. A larger tensor is not a matrix of a model, and products of these numbers
/// fit in 64 bits.
constexpr int64_t kLargestSize = int64_t{1} << 27;

/// The tensor that shows that a weight is quantised.
struct Trace {
  std::string tensor = {};         ///< name of that tensor; empty: nothing shows it
  std::string_view mark = {};      ///< mark of a layout that it has; empty: the tensor has the weight's own name
  std::optional<DType> type = {};  ///< type of the tensor with the weight's own name
};

Trace trace_of(const Checkpoint& checkpoint, const std::string& name, std::string_view module) {
  for (const QuantFormat* format : kQuantFormats)
    for (const TensorLayout& layout : format->layouts)
      for (const std::string_view mark : layout.marks)
        if (const std::string tensor = cat(module, mark); checkpoint.contains(tensor))
          return {tensor, mark, layout.type};
  if (checkpoint.contains(name)) return {name, {}, checkpoint.info(name).dtype};
  return {};
}

bool is_stored_as_it_is(const Trace& trace) {
  if (trace.tensor.empty()) return true;  // the tensor is missing, which is reported elsewhere
  constexpr std::array kPlain{DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
  return trace.mark.empty() && std::find(kPlain.begin(), kPlain.end(), *trace.type) != kPlain.end();
}

/// Whether a matrix with this layout has such a tensor.
bool fits(const TensorLayout& layout, const Trace& trace) {
  if (trace.mark.empty()) return layout.marks.empty() && trace.type == layout.type;
  return std::ranges::find(layout.marks, trace.mark) != layout.marks.end();
}

const TensorLayout& layout_of(MatrixPacking packing) {
  for (const QuantFormat* format : kQuantFormats)
    for (const TensorLayout& layout : format->layouts)
      if (layout.packing == packing) return layout;
  throw std::logic_error(cat("packing ", static_cast<int>(packing), " is of no format"));
}

int64_t bytes_of_grid(const MatrixCode& code, int64_t rows, int64_t columns, int64_t bytes_of_scale) {
  const int64_t codes = rows * blocks_of(columns * code.bits, 8);
  const int64_t scales = blocks_of(rows, code.block.rows) * blocks_of(columns, code.block.columns);
  return codes + scales * bytes_of_scale + (code.zeros == ZeroPoints::kNone ? 0 : scales) +
         (code.ordered ? 8 * columns : 0) + (code.bits == 4 ? 256 * 2 * 2 : 0);
}

}  // namespace

const PackedPart* PackedSpec::part(PartRole role) const {
  const auto at = std::find_if(parts.begin(), parts.end(), [&](const PackedPart& part) { return part.role == role; });
  return at == parts.end() ? nullptr : &*at;
}

int64_t blocks_of(int64_t size, int64_t block) {
  return block == 0 || size == 0 ? std::min<int64_t>(size, 1) : (size - 1) / block + 1;
}

std::optional<PackedSpec> find_packed(const QuantScheme& scheme, const Checkpoint& checkpoint, const MatrixPlace& place,
                                      std::vector<std::string>& problems) {
  PackedSpec spec{.name = std::string(place.name),
                  .rows = place.rows,
                  .columns = place.columns,
                  .slice = {.matrices = place.experts}};
  const std::string_view module = module_of(place.name);
  if (module == place.name && place.experts == 0) return std::nullopt;  // no method quantises anything else
  const Trace trace = trace_of(checkpoint, spec.name, module);
  if (is_stored_as_it_is(trace)) return std::nullopt;
  PartFinder finder(checkpoint, spec, problems);
  const std::optional<MatrixCode> code = scheme.code_of_packed(module);
  if (!code) {
    finder.problem(trace.tensor, "is quantised, but nothing in quantization_config speaks of its module");
    return std::nullopt;
  }
  spec.code = *code;
  const TensorLayout& layout = layout_of(code->packing);
  if (!fits(layout, trace) || layout.holds_experts != (place.experts > 0)) {
    finder.problem(trace.tensor, cat(trace.type ? cat("type ", dtype_name(*trace.type), ", ") : std::string(),
                                     "expected ", layout.meaning, ", as quantization_config says"));
    return std::nullopt;
  }
  if (std::min(spec.rows, spec.columns) < 1 || std::max(spec.rows, spec.columns) > kLargestSize)
    finder.problem(spec.name, cat("expected a matrix of 1 to ", kLargestSize, " rows and columns, got ",
                                  shape_text(std::vector{spec.rows, spec.columns})));
  if (finder.is_whole()) layout.find(finder, spec);
  return finder.is_whole() ? std::optional(std::move(spec)) : std::nullopt;
}

std::vector<std::string> tensors_of_packing(const QuantScheme& scheme, const Checkpoint& checkpoint,
                                            const PackedSpec& spec) {
  std::vector<std::string> names;
  for (const PackedPart& part : spec.parts) names.push_back(part.tensor);
  for (std::string& name : scheme.aside_names(module_of(spec.name)))
    if (checkpoint.contains(name)) names.push_back(std::move(name));
  return names;
}

int64_t packed_bytes(const MatrixCode& code, int64_t rows, int64_t columns) {
  return layout_of(code.packing).bytes(code, rows, columns);
}

int64_t bytes_with_half_scales(const MatrixCode& code, int64_t rows, int64_t columns) {
  return bytes_of_grid(code, rows, columns, 2);
}

int64_t bytes_with_float_scales(const MatrixCode& code, int64_t rows, int64_t columns) {
  return bytes_of_grid(code, rows, columns, 4);
}

std::vector<std::vector<int64_t>> scale_shapes(const PackedSpec& spec, const ScaleBlock& block) {
  const int64_t rows = blocks_of(spec.rows, block.rows), columns = blocks_of(spec.columns, block.columns);
  std::vector<std::vector<int64_t>> shapes{{rows, columns}};
  if (columns == 1) shapes.push_back({rows});
  if (rows * columns == 1) shapes.push_back({});
  return shapes;
}

}  // namespace lancet
