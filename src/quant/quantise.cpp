#include "lancet/quant/quantise.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "formats/codecs.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "numbers/measured.h"
#include "numbers/quantise_rows.h"

namespace lancet {
namespace {

/// What a quantiser makes; the format's codec makes it.
struct QuantiserRow {
  Quantiser quantiser;
  std::string_view name;
  MatrixCode code;
};

constexpr QuantiserRow kQuantisers[] = {
    {Quantiser::kInt8, "int8", {.packing = MatrixPacking::kBitsAndBytes8, .block = {1, 0}}},
    {Quantiser::kNf4, "nf4", {.packing = MatrixPacking::kBitsAndBytes4, .bits = 4, .block = {1, 64}}},
    {Quantiser::kFloat8, "fp8", {.packing = MatrixPacking::kFloat8, .block = {1, 0}}},
};

const QuantiserRow& row_of(Quantiser quantiser) {
  return *std::ranges::find(kQuantisers, quantiser, &QuantiserRow::quantiser);
}

}  // namespace

PackedNumbers quantise_rows(const Tensor& weight, at::ScalarType code_type, RowCodes (*quantise)(const Tensor& rows)) {
  PackedNumbers numbers;
  numbers.codes = torch::empty(weight.sizes(), weight.options().dtype(code_type));
  numbers.scales = torch::empty({weight.size(0), 1}, weight.options().dtype(at::kFloat));
  const int64_t step = rows_at_a_time(weight.size(1), weight.device());
  for (int64_t row = 0; row < weight.size(0); row += step) {
    const int64_t n = std::min(step, weight.size(0) - row);
    const RowCodes some = quantise(weight.narrow(0, row, n).to(at::kFloat));
    numbers.codes.narrow(0, row, n).copy_(some.codes);
    numbers.scales.narrow(0, row, n).copy_(some.scales);
  }
  return numbers;
}

std::string_view quantiser_name(Quantiser quantiser) { return row_of(quantiser).name; }

PackedMatrix quantise(const Tensor& weight, Quantiser quantiser, const std::string& name) {
  const torch::NoGradGuard no_grad;
  const QuantiserRow& row = row_of(quantiser);
  const bool makes_pairs = row.code.bits == 4;
  if (weight.dim() != 2 || weight.numel() == 0 || (makes_pairs && weight.size(1) % 2 != 0))
    throw CheckpointError(cat(name, ": expected a matrix", makes_pairs ? " of an even number of columns" : "",
                              " to keep as ", row.name, ", got ", shape_text(weight.sizes().vec()),
                              ": keep it in full precision"));
  PackedNumbers numbers = codec_of(row.code.packing).quantise(weight, row.code);
  numbers.name = name;
  numbers.rows = weight.size(0);
  numbers.columns = weight.size(1);
  Measured measured;
  const size_t scale = measured.magnitude(numbers.scales);
  measured.read();
  if (!std::isfinite(measured.value(scale)))
    throw NumericError(cat(name, ": has weights that are not finite: the model is damaged, download it again"));
  numbers.largest *= measured.value(scale);
  return PackedMatrix(std::move(numbers));
}

int64_t quantised_bytes(Quantiser quantiser, int64_t rows, int64_t columns) {
  return packed_bytes(row_of(quantiser).code, rows, columns);
}

}  // namespace lancet
