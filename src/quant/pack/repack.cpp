#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "feedback.h"
#include "formats/codecs.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/quant/packed_matrix.h"
#include "numbers/measured.h"
#include "numbers/packed_numbers.h"
#include "packing.h"
#include "refine.h"
#include "sweep.h"

namespace lancet {
namespace {

constexpr int64_t kFewBits = 4;

void check_finite(const Tensor& weight, const std::string& name) {
  const auto [least, most] = weight.aminmax();
  Measured measured;
  const size_t a = measured.one(least), b = measured.one(most);
  measured.read();
  if (!std::isfinite(measured.value(a)) || !std::isfinite(measured.value(b)))
    throw NumericError(cat(name, ": has weights that are not finite, which cannot be packed"));
}

/// [in] f32 about 1: H's diagonal, or ones.
Tensor importance_of_columns(const Tensor& importance, const Tensor& weight) {
  if (!importance.defined()) return torch::ones({weight.size(1)}, weight.options().dtype(at::kFloat));
  const Tensor diagonal = importance.diagonal().to(at::kDouble);
  return (diagonal / diagonal.mean()).nan_to_num(1, 1, 1).to(at::kFloat);
}

ScaleChoice choice_of(const PackOptions& options, const MatrixCode& code, const Tensor& importance) {
  const bool pays = importance.defined() && code.bits <= kFewBits;
  return options.scales.value_or(pays ? ScaleChoice::kLeastError : ScaleChoice::kLargest);
}

/// Whether scales are to be exponents, as the file's are; of a matrix that no file has, they are not.
bool are_exponents(const NumberLine& line, const Tensor& scales, const Tensor& before) {
  return line.has_exponent_scales() && before.defined() &&
         std::get<0>(at::frexp(scales.to(at::kFloat))).eq(0.5).all().item<bool>();
}

/// What errors are weighed by, and how.
struct Weighing {
  const Tensor& importance;
  const PackOptions& options;
  const std::string& name;
};

Tensor least_error_codes(const Matrices& matrices, const NumberLine& line, ScaleGrid& grid, const Weighing& by) {
  RoundedColumns rounded =
      round_with_feedback(matrices, line, grid, feedback_factor(by.importance, by.options.damping, by.name));
  refine_codes(rounded, matrices, line, grid, by.importance, by.options);
  return rounded.codes;
}

/// What a reader would check of the results.
void check_scales(const Tensor& scales, const NumberLine& line, const std::string& name) {
  Measured measured;
  const size_t place = measured.magnitude(scales);
  measured.read();
  const double largest = measured.value(place) * line.largest_number();
  if (!(largest <= largest_of(line.type())))
    throw NumericError(cat(name, ": its weights need scales as large as ", measured.value(place),
                           ", and numbers times scales would go beyond ", largest_of(line.type()),
                           ", the most that the format's type holds"));
}

}  // namespace

void check_shapes(const Tensor& weight, const PackedSpec& spec, const Tensor& importance) {
  const std::vector<int64_t> shape{spec.rows, spec.columns};
  if (weight.sizes() != shape || (weight.scalar_type() != at::kFloat && weight.scalar_type() != at::kDouble))
    throw std::logic_error(cat(spec.name, ": expected f32 or f64 of shape ", shape_text(shape), ", got ",
                               at::toString(weight.scalar_type()), " of ", shape_text(weight.sizes().vec())));
  const std::vector<int64_t> square{spec.columns, spec.columns};
  if (importance.defined() && importance.sizes() != square)
    throw std::logic_error(cat(spec.name, ": expected an importance of shape ", shape_text(square), ", got ",
                               shape_text(importance.sizes().vec())));
}

void fill_parts(StoredParts& parts, const Matrices& matrices, const PackedSpec& spec, const Tensor& importance_II,
                const PackOptions& options) {
  const Tensor& weight = matrices.weight;
  check_finite(weight, spec.name);
  const Tensor importance = importance_II.defined() ? importance_II.to(weight.device()) : Tensor();
  const Tensor stored = parts.scale_numbers();
  const NumberLine line = codec_of(spec.code.packing).line(spec, stored.scalar_type(), weight.device());
  const ScaleKind kind{stored.scalar_type(), are_exponents(line, stored, matrices.before)};
  const ScaleRule rule(line, spec, kind, choice_of(options, spec.code, importance));
  const ScaleLayout layout = parts.layout();
  FoundScales before = parts.scales(layout);
  std::optional<NestedGrid> nested;
  if (spec.code.nested)
    nested.emplace(spec, before.places, parts.part(PartRole::kNestedScales), parts.part(PartRole::kNestedTable));
  ScaleGrid grid(layout, rule, std::move(before), std::move(nested), importance_of_columns(importance, weight));
  parts.set_codes(importance.defined() ? least_error_codes(matrices, line, grid, {importance, options, spec.name})
                                       : round_columns(matrices, line, grid));
  check_scales(grid.found().scales, line, spec.name);
  parts.set_scales(grid.found());
  if (grid.nested()) parts.set_nested_scales(grid.nested()->scales());
}

std::vector<Tensor> all_parts(const StoredParts& parts, const PackedSpec& spec, std::span<const Tensor> records) {
  std::vector<Tensor> all;
  for (size_t i = 0; i < spec.parts.size(); ++i)
    all.push_back(spec.parts[i].role == PartRole::kRecord ? records[i] : parts.part(spec.parts[i].role));
  return all;
}

std::vector<Tensor> repack(const Tensor& weight, const PackedSpec& spec, std::span<const Tensor> before,
                           const Tensor& importance_II, const PackOptions& options) {
  const torch::NoGradGuard no_grad;
  check_shapes(weight, spec, importance_II);
  StoredParts parts(spec, before, weight.device());
  Matrices matrices{weight, PackedMatrix::assemble(spec, all_parts(parts, spec, before)).unpack(at::kFloat)};
  fill_parts(parts, matrices, spec, importance_II, options);
  return all_parts(parts, spec, before);
}

}  // namespace lancet
