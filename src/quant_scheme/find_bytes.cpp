// Layouts of a byte a number, in the matrix's own shape: fp8, and compressed-tensors' int8. A scale for all, for each
// row, for groups of columns or for blocks.
#include "lancet/core/strings.h"
#include "part_finder.h"

namespace lancet {
namespace {

/// Shapes that scales of such blocks have in files.
std::vector<std::vector<int64_t>> scale_shapes(const PackedSpec& spec, const ScaleBlock& block) {
  const int64_t rows = blocks_of(spec.rows, block.rows), columns = blocks_of(spec.columns, block.columns);
  std::vector<std::vector<int64_t>> shapes{{rows, columns}};
  if (columns == 1) shapes.push_back({rows});
  if (rows * columns == 1) shapes.push_back({});
  return shapes;
}

}  // namespace

void find_float8(PartFinder& finder, PackedSpec& spec) {
  const std::string module = finder.module();
  finder.need({PartRole::kCodes, spec.name, {DType::kF8E4M3}, {{spec.rows, spec.columns}}});
  const std::string inverse = module + ".weight_scale_inv";  // which is what the numbers are multiplied by, too
  const std::string plain = module + ".weight_scale";
  const bool has_blocks = spec.code.block.rows > 1 && !spec.code.in_scale_type;
  const std::string& name = finder.contains(inverse) || (has_blocks && !finder.contains(plain)) ? inverse : plain;
  std::vector<std::vector<int64_t>> shapes = scale_shapes(spec, spec.code.block);
  // Without blocks in the configuration the tensor's shape tells one scale from one a row.
  if (spec.code.block.rows == 0 && spec.code.block.columns == 0) {
    const std::vector<std::vector<int64_t>> by_row = scale_shapes(spec, {1, 0});
    shapes.insert(shapes.end(), by_row.begin(), by_row.end());
  }
  const TensorInfo* scales = finder.need({PartRole::kScales, name, {DType::kF32, DType::kBF16, DType::kF16}, shapes});
  finder.take_idle_zeros(module + ".weight_zero_point");
  if (scales != nullptr && spec.code.block.rows == 0 && spec.rows > 1 && !scales->shape.empty() &&
      scales->shape.front() == spec.rows)
    spec.code.block = {1, 0};
}

void find_compressed_int8(PartFinder& finder, PackedSpec& spec) {
  const std::string module = finder.module();
  const std::vector<std::vector<int64_t>> shapes = scale_shapes(spec, spec.code.block);
  if (finder.contains(module + ".SCB"))
    finder.problem(module + ".SCB", "belongs to bitsandbytes, expected compressed-tensors' weight_scale");
  finder.need({PartRole::kCodes, spec.name, {DType::kI8}, {{spec.rows, spec.columns}}});
  finder.need({PartRole::kScales, module + ".weight_scale", {DType::kF32, DType::kBF16, DType::kF16}, shapes});
  if (spec.code.zeros == ZeroPoints::kStored)
    finder.need({PartRole::kZeros, module + ".weight_zero_point", {DType::kI8}, shapes});
  else
    finder.take_idle_zeros(module + ".weight_zero_point");
}

}  // namespace lancet
