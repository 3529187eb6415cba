#include "scale_rule.h"

#include <torch/types.h>

#include "lancet/quant_formats/packed_spec.h"

namespace lancet {
namespace {

constexpr int kSmallerScales = 15;
constexpr double kStepOfScales = 0.02;
constexpr double kLeastOfE8M0 = 0x1p-127;

/// A quotient of every number: GPUs multiply by a number's inverse where it is one of the host.
Tensor divided_by(const Tensor& values, double divisor) {
  return values.div(torch::full({}, divisor, values.options()));
}

}  // namespace

ScaleRule::ScaleRule(const NumberLine& line, const PackedSpec& spec, ScaleKind kind, ScaleChoice choice)
    : line_(line),
      has_free_zeros_(spec.code.zeros != ZeroPoints::kNone && !spec.code.symmetric),
      stores_zeros_(spec.code.zeros != ZeroPoints::kNone),
      kind_(kind),
      choice_(choice),
      rows_of_scale_(spec.code.block.rows) {
  constexpr double kLeastOfF16 = 0x1p-24, kLeastNormalOfF32 = 0x1p-126;
  if (line.divides_by_scales()) least_scale_ = kind.type == at::kHalf ? kLeastOfF16 : kLeastNormalOfF32;
}

FoundScales ScaleRule::stored(const Tensor& scales) const {
  if (kind_.is_power_of_two) {
    const auto [mantissas, exponents] = at::frexp(scales);  // mantissas from 0.5 on
    const Tensor powers = at::exp2((exponents - mantissas.eq(0.5).to(at::kInt)).to(scales.scalar_type()));
    return {kind_.type == at::kFloat8_e8m0fnu ? powers.clamp_min_(kLeastOfE8M0) : powers};
  }
  const Tensor rounded = scales.to(kind_.type).to(at::kFloat);
  return {least_scale_ > 0 ? rounded.masked_fill(rounded.eq(0), least_scale_) : rounded};
}

Tensor ScaleRule::by_scale(const Tensor& values) const {
  const int64_t rows = values.size(0), size = rows_of_scale_ == 0 ? rows : rows_of_scale_;
  const int64_t scales = blocks_of(rows, size);
  return at::constant_pad_nd(values, {0, scales * size - rows}, 0).view({scales, size});
}

Tensor ScaleRule::over_rows(const Tensor& values, int64_t rows) const {
  if (rows_of_scale_ == 1) return values;
  const int64_t last = values.dim() - 1;
  if (rows_of_scale_ == 0) return values.expand({values.size(0), rows});
  return values.repeat_interleave(rows_of_scale_, last).narrow(last, 0, rows);
}

Tensor ScaleRule::all_of_scale(const Tensor& truths) const {
  return rows_of_scale_ == 1 ? truths : by_scale(truths.logical_not().to(at::kByte)).amax(1).eq(0);
}

/// Finds the scales of groups with the extremes `least` and `most` [scale rows], 0 within, for a part of that range.
FoundScales ScaleRule::scaled(const Tensor& least, const Tensor& most, double part, const StoreScales& store) const {
  if (!has_free_zeros_) {
    FoundScales found = store(divided_by(at::maximum(most, least.neg()).mul_(part), line_.reach()));
    if (stores_zeros_) found.zeros = torch::full_like(found.scales, (line_.largest_code() + 1) / 2);
    return found;
  }
  FoundScales found = store(divided_by((most - least).mul_(part), static_cast<double>(line_.largest_code())));
  found.zeros = (least * -part)
                    .div_(found.scales)
                    .round_()
                    .clamp_(static_cast<double>(line_.least_zero()), static_cast<double>(line_.largest_code()));
  return found;
}

FoundScales ScaleRule::find(const Tensor& numbers, const Tensor& importance, const StoreScales& store) const {
  Tensor least = numbers.amin(0).clamp_max_(0), most = numbers.amax(0).clamp_min_(0);
  if (rows_of_scale_ != 1) {
    least = by_scale(least).amin(1);
    most = by_scale(most).amax(1);
  }
  FoundScales best = scaled(least, most, 1, store);
  if (choice_ == ScaleChoice::kLargest) return best;
  const auto error_of = [&](const FoundScales& found) {
    const LineScales at{over_rows(found.scales.unsqueeze(0), numbers.size(1)),
                        found.zeros.defined() ? over_rows(found.zeros.unsqueeze(0), numbers.size(1)) : Tensor()};
    const Tensor apart = line_.values(line_.codes(numbers, at), at).to(at::kFloat).sub_(numbers);
    const Tensor errors = apart.square_().mul_(importance).sum(0);
    return rows_of_scale_ == 1 ? errors : by_scale(errors).sum(1);
  };
  Tensor least_error = error_of(best);
  for (int i = 1; i <= kSmallerScales; ++i) {
    const FoundScales found = scaled(least, most, 1 - kStepOfScales * i, store);
    const Tensor error = error_of(found), is_less = error.lt(least_error);
    best = merged(is_less, found, best);
    least_error = least_error.where(is_less.logical_not(), error);
  }
  return best;
}

FoundScales merged(const Tensor& where, const FoundScales& chosen, const FoundScales& other) {
  const auto one = [&](const Tensor& a, const Tensor& b) { return a.defined() ? a.where(where, b) : Tensor(); };
  return {one(chosen.scales, other.scales), one(chosen.zeros, other.zeros), one(chosen.places, other.places)};
}

}  // namespace lancet
