#include "numbers/assembly.h"

#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/codecs.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/quant/packed_matrix.h"

namespace lancet {

Assembly::Assembly(const PackedSpec& spec, std::span<const Tensor> parts) : spec_(spec), parts_(parts) {
  numbers_.name = spec.name;
  numbers_.rows = spec.rows;
  numbers_.columns = spec.columns;
  numbers_.bits = spec.code.bits;
  numbers_.block = spec.code.block;
}

PackedNumbers Assembly::finish() {
  const SettleCodes settle = codec_of(spec_.code.packing).assemble(*this);
  if (numbers_.kind == CodeKind::kBlocks) return finish_blocks(settle());
  const size_t scales = measure_scales();
  measured_.read();
  const double largest_code = settle();
  settle_order();
  check_scales(scales, largest_code);
  if (!problems_.empty()) throw CheckpointError(join(problems_, "\n  "));
  return std::move(numbers_);
}

PackedNumbers Assembly::finish_blocks(double largest) {
  if (!std::isfinite(largest)) {
    problem(PartRole::kCodes, "has numbers that are not finite: the file is damaged, download it again");
    throw CheckpointError(join(problems_, "\n  "));
  }
  numbers_.largest = largest;
  return std::move(numbers_);
}

Tensor Assembly::part(PartRole role) const {
  for (size_t i = 0; i < spec_.parts.size(); ++i)
    if (spec_.parts[i].role == role) return parts_[i];
  return {};
}

void Assembly::problem(PartRole role, std::string_view what) {
  problems_.push_back(cat(spec_.part(role)->tensor, ": ", what));
}

void Assembly::take_scales(at::ScalarType type) {
  numbers_.type = type;
  numbers_.scales =
      part(PartRole::kScales)
          .to(type)
          .reshape({blocks_of(spec_.rows, spec_.code.block.rows), blocks_of(spec_.columns, spec_.code.block.columns)})
          .contiguous();
}

void Assembly::take_scales_of_outputs() {
  numbers_.scales = part(PartRole::kScales).transpose(0, 1).contiguous();
  numbers_.type = numbers_.scales.scalar_type();
}

void Assembly::take_whole_codes(const Tensor& rows) {
  numbers_.codes = rows;
  numbers_.kind = numbers_.bits == 4 ? CodeKind::kPairs : numbers_.bits == 8 ? CodeKind::kBytes : CodeKind::kPlanes;
}

MeasuredZeros Assembly::measure_zeros(const Tensor& zeros) {
  const Tensor grid = zeros.transpose(0, 1).contiguous();
  const size_t least = measured_.least(grid);
  return {grid, least, measured_.most(grid)};
}

void Assembly::take_order() {
  const Tensor order = part(PartRole::kOrder);
  if (!order.defined()) return;
  numbers_.order = order.to(at::kLong).contiguous();
  least_group_ = measured_.least(order);
  most_group_ = measured_.most(order);
  const int64_t group = spec_.code.block.columns == 0 ? spec_.columns : spec_.code.block.columns;
  const Tensor in_turn = torch::arange(spec_.columns, order.options()).div(group, "floor");
  in_turn_ = measured_.one(order.eq(in_turn).all());
}

double Assembly::settle_whole(const MeasuredZeros& zeros) {
  const double last = std::exp2(static_cast<double>(numbers_.bits)) - 1;
  double zero = std::exp2(static_cast<double>(numbers_.bits - 1)), largest = zero;
  if (zeros.zeros.defined() && measured_.value(zeros.least) == measured_.value(zeros.most)) {
    zero = measured_.value(zeros.least);
    largest = std::max(zero, last - zero);
  } else if (zeros.zeros.defined()) {
    numbers_.zeros = zeros.zeros;
    zero = 0;
    largest = last;
  }
  if (numbers_.kind != CodeKind::kPairs) {
    numbers_.zero = zero;
    return largest;
  }
  std::array<float, 16> values{};
  for (size_t code = 0; code < values.size(); ++code)
    values[code] = static_cast<float>(static_cast<double>(code) - zero);
  set_pairs(values, PairOrder::kLowFirst);
  return largest;
}

void Assembly::set_pairs(std::span<const float> values, PairOrder order) {
  numbers_.pairs = pair_table(values, order, numbers_.type, numbers_.codes.device());
}

void Assembly::settle_order() {
  if (!numbers_.order.defined()) return;
  const double groups = static_cast<double>(numbers_.scales.size(1));
  const double least = measured_.value(least_group_), most = measured_.value(most_group_);
  if (least < 0 || most >= groups)
    problem(PartRole::kOrder, cat("groups ", least, " to ", most, ", expected 0 to ", groups - 1,
                                  ": the file is damaged, download it again"));
  if (measured_.value(in_turn_) != 0) numbers_.order.reset();
}

size_t Assembly::measure_scales() {
  if (numbers_.scales.scalar_type() == at::kFloat8_e8m0fnu) return measured_.magnitude(numbers_.scales.to(at::kFloat));
  if (!spec_.code.nested) return measured_.magnitude(numbers_.scales);
  nested_table_ = measured_.magnitude(numbers_.nested.table);
  return measured_.magnitude(numbers_.nested.scales);
}

void Assembly::check_scales(size_t place, double largest_code) {
  const PartRole role = spec_.code.nested ? PartRole::kNestedScales : PartRole::kScales;
  double scale = measured_.value(place);
  if (!std::isfinite(scale)) return problem(role, "has numbers that are not finite: the file is damaged");
  if (spec_.code.nested) {
    const double table = measured_.value(nested_table_);
    if (!std::isfinite(table)) return problem(PartRole::kNestedTable, "has numbers that are not finite");
    scale = scale * table + std::abs(spec_.nested_offset);
  }
  numbers_.largest = largest_code * scale;
  if (numbers_.largest > largest_of(numbers_.type))
    problem(role, cat("scales as large as ", scale, " make weights beyond ", largest_of(numbers_.type), ", the most ",
                      "that their type holds: the file is damaged, download it again"));
  numbers_.largest *= numbers_.factor;
}

PackedMatrix PackedMatrix::assemble(const PackedSpec& spec, std::span<const Tensor> parts) {
  const torch::NoGradGuard no_grad;
  return PackedMatrix(Assembly(spec, parts).finish());
}

}  // namespace lancet
