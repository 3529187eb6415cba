// Layouts in words of 32 bits, low bits first. GPTQ: `qweight` [columns * bits / 32, rows], `qzeros` [groups, rows *
// bits / 32], `scales` [groups, rows], `g_idx` [columns]. AWQ: `qweight` [columns, rows / 8]; zero points and scales
// alike. compressed-tensors: `weight_packed` [rows, columns * bits / 32], `weight_scale` [rows, groups],
// `weight_zero_point` [rows * bits / 32, groups].
#include <cstring>

#include "lancet/core/strings.h"
#include "part_finder.h"

namespace lancet {
namespace {

const std::vector<DType> kScaleTypes{DType::kF16, DType::kBF16, DType::kF32};

/// Whether all words are full; a problem otherwise.
bool is_full(PartFinder& finder, int64_t size, std::string_view what, int64_t bits) {
  const int64_t step = bits == 3 ? 32 : 32 / bits;
  if (size % step == 0) return true;
  finder.problem(finder.spec().name, cat("expected a multiple of ", step, " ", what, " for numbers of ", bits,
                                         " bits in words of 32, got ", size));
  return false;
}

/// Which group each column belongs to. `why`: what says that the file has to tell.
void find_order(PartFinder& finder, const std::string& tensor, std::string_view why) {
  const PackedSpec& spec = finder.spec();
  const ExpectedPart order{PartRole::kOrder, tensor, {DType::kI32, DType::kI64}, {{spec.columns}}};
  if (finder.contains(tensor)) {
    finder.take(order);
  } else if (spec.code.ordered) {
    finder.problem(tensor, cat("missing, expected I32 of shape ", shape_text(order.shapes.front()), ": ", why,
                               ", so nothing else says which group a column belongs to; download the file again"));
  }
}

}  // namespace

void find_gptq(PartFinder& finder, PackedSpec& spec) {
  const int64_t bits = spec.code.bits, groups = blocks_of(spec.columns, spec.code.block.columns);
  const std::string module = finder.module();
  if (!is_full(finder, spec.columns, "columns", bits) || !is_full(finder, spec.rows, "rows", bits)) return;
  finder.need({PartRole::kCodes, module + ".qweight", {DType::kI32}, {{spec.columns * bits / 32, spec.rows}}});
  finder.need({PartRole::kZeros, module + ".qzeros", {DType::kI32}, {{groups, spec.rows * bits / 32}}});
  finder.need({PartRole::kScales, module + ".scales", kScaleTypes, {{groups, spec.rows}}});
  find_order(finder, module + ".g_idx", "desc_act is true");
}

void find_awq(PartFinder& finder, PackedSpec& spec) {
  const int64_t groups = blocks_of(spec.columns, spec.code.block.columns);
  const std::string module = finder.module();
  if (!is_full(finder, spec.rows, "rows", spec.code.bits)) return;
  if (spec.columns % 2 != 0)
    return finder.problem(spec.name, cat("expected an even number of columns, got ", spec.columns));
  finder.need({PartRole::kCodes, module + ".qweight", {DType::kI32}, {{spec.columns, spec.rows / 8}}});
  finder.need({PartRole::kZeros, module + ".qzeros", {DType::kI32}, {{groups, spec.rows / 8}}});
  finder.need({PartRole::kScales, module + ".scales", kScaleTypes, {{groups, spec.rows}}});
}

void find_compressed_packed(PartFinder& finder, PackedSpec& spec) {
  const int64_t bits = spec.code.bits;
  const int64_t scale_rows = blocks_of(spec.rows, spec.code.block.rows);
  const int64_t groups = blocks_of(spec.columns, spec.code.block.columns);
  const std::string module = finder.module();
  if (spec.columns * bits % 8 != 0)
    return finder.problem(spec.name, cat("expected an even number of columns, got ", spec.columns));
  finder.need(
      {PartRole::kCodes, module + ".weight_packed", {DType::kI32}, {{spec.rows, blocks_of(spec.columns * bits, 32)}}});
  std::vector<std::vector<int64_t>> shapes{{scale_rows, groups}};
  if (scale_rows * groups == 1) shapes.push_back({1});
  finder.need({PartRole::kScales, module + ".weight_scale", kScaleTypes, shapes});
  if (spec.code.zeros == ZeroPoints::kStored)
    finder.need(
        {PartRole::kZeros, module + ".weight_zero_point", {DType::kI32}, {{blocks_of(scale_rows * bits, 32), groups}}});
  else
    finder.take_idle_zeros(module + ".weight_zero_point");
  find_order(finder, module + ".weight_g_idx", "actorder is group");
  const std::string shape_name = module + ".weight_shape";
  const TensorInfo* shape = finder.take({PartRole::kRecord, shape_name, {DType::kI64}, {{2}}});
  if (shape == nullptr) return;
  int64_t sizes[2] = {};
  std::memcpy(sizes, finder.bytes(*shape).data(), sizeof sizes);
  if (sizes[0] != spec.rows || sizes[1] != spec.columns)
    finder.problem(shape_name, cat("is ", shape_text(sizes), ", expected ",
                                   shape_text(std::vector{spec.rows, spec.columns}), " from config.json"));
}

}  // namespace lancet
