// Sources: bitsandbytes, backends/default/ops.py (int8_vectorwise_quant, quantize_4bit); compressed-tensors,
// quantization/lifecycle (E4M3, a channel).
#include "lancet/quant/quantise.h"

#include <torch/types.h>

#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "measured.h"
#include "number_tables.h"
#include "packed_numbers.h"
#include "words.h"

namespace lancet {
namespace {

constexpr int64_t kNf4Block = 64;

/// Codes and scales of some rows, or of some of the flattened matrix.
struct Piece {
  Tensor codes;
  Tensor scales;
};

Piece int8_rows(const Tensor& rows) {
  const Tensor scales = rows.abs().amax(1, /*keepdim=*/true);
  const Tensor numbers = rows * (127.0 / scales);  // a row of zeros: 0 times infinity
  return {numbers.round_().nan_to_num_(0).to(at::kChar), scales};
}

Piece float8_rows(const Tensor& rows) {
  const Tensor largest = rows.abs().amax(1, /*keepdim=*/true);
  const Tensor scales = largest / kLargestFloat8;
  const Tensor numbers = rows / scales.where(scales > 0, torch::ones_like(scales));
  return {numbers.clamp_(-kLargestFloat8, kLargestFloat8).to(at::kFloat8_e4m3fn), scales};
}

/// `flat`: whole blocks, or a last one that is shorter.
Piece nf4_blocks(const Tensor& flat, const Tensor& borders) {
  const int64_t n = flat.size(0), block = std::min(kNf4Block, n);
  const Tensor blocks = flat.view({n / block, block});
  const Tensor scales = blocks.abs().amax(1);
  const Tensor inverse = scales.clamp_min(kLeastDivisor).reciprocal_().unsqueeze(1);
  const Tensor codes = at::bucketize((blocks * inverse).clamp_(-1, 1), borders, /*out_int32=*/true).view({n / 2, 2});
  return {codes.select(1, 0).bitwise_left_shift(4).bitwise_or_(codes.select(1, 1)).to(at::kByte), scales};
}

PackedNumbers by_rows(const Tensor& weight, Quantiser quantiser) {
  const bool is_int8 = quantiser == Quantiser::kInt8;
  PackedNumbers numbers;
  numbers.codes = torch::empty(weight.sizes(), weight.options().dtype(is_int8 ? at::kChar : at::kFloat8_e4m3fn));
  numbers.scales = torch::empty({weight.size(0), 1}, weight.options().dtype(at::kFloat));
  if (is_int8) numbers.factor = kInt8Factor;
  const int64_t step = rows_at_a_time(weight.size(1), weight.device());
  for (int64_t row = 0; row < weight.size(0); row += step) {
    const int64_t n = std::min(step, weight.size(0) - row);
    const Tensor rows = weight.narrow(0, row, n).to(at::kFloat);
    const Piece piece = is_int8 ? int8_rows(rows) : float8_rows(rows);
    numbers.codes.narrow(0, row, n).copy_(piece.codes);
    numbers.scales.narrow(0, row, n).copy_(piece.scales);
  }
  return numbers;
}

Tensor nf4_borders(at::Device device) {
  std::vector<float> borders;
  for (size_t i = 0; i + 1 < kNf4Numbers.size(); ++i) borders.push_back((kNf4Numbers[i] + kNf4Numbers[i + 1]) / 2);
  return torch::tensor(borders).to(device);
}

PackedNumbers by_blocks(const Tensor& weight) {
  const Tensor flat = weight.contiguous().flatten(), borders = nf4_borders(weight.device());
  const int64_t n = flat.size(0), blocks = blocks_of(n, kNf4Block), whole = n / kNf4Block * kNf4Block;
  const int64_t step = rows_at_a_time(kNf4Block, weight.device()) * kNf4Block;
  PackedNumbers numbers;
  numbers.codes = torch::empty({n / 2}, weight.options().dtype(at::kByte));
  numbers.scales = torch::empty({blocks}, weight.options().dtype(at::kFloat));
  for (int64_t at = 0; at < n;) {
    const int64_t some = at < whole ? std::min(step, whole - at) : n - at;
    const Piece piece = nf4_blocks(flat.narrow(0, at, some).to(at::kFloat), borders);
    numbers.codes.narrow(0, at / 2, some / 2).copy_(piece.codes);
    numbers.scales.narrow(0, at / kNf4Block, piece.scales.size(0)).copy_(piece.scales);
    at += some;
  }
  numbers.codes = numbers.codes.view({weight.size(0), weight.size(1) / 2});
  numbers.kind = CodeKind::kPairs;
  numbers.bits = 4;
  numbers.flat_block = kNf4Block;
  numbers.pairs = pair_table(kNf4Numbers, PairOrder::kHighFirst, at::kFloat, weight.device());
  return numbers;
}

double largest_code(Quantiser quantiser) {
  return quantiser == Quantiser::kInt8 ? 127 * kInt8Factor : quantiser == Quantiser::kNf4 ? 1 : kLargestFloat8;
}

}  // namespace

std::string_view quantiser_name(Quantiser quantiser) {
  return quantiser == Quantiser::kInt8 ? "int8" : quantiser == Quantiser::kNf4 ? "nf4" : "fp8";
}

PackedMatrix quantise(const Tensor& weight, Quantiser quantiser, const std::string& name) {
  const torch::NoGradGuard no_grad;
  if (weight.dim() != 2 || weight.numel() == 0 || (quantiser == Quantiser::kNf4 && weight.size(1) % 2 != 0))
    throw CheckpointError(cat(name, ": expected a matrix",
                              quantiser == Quantiser::kNf4 ? " of an even number of columns" : "", " to keep as ",
                              quantiser_name(quantiser), ", got ", shape_text(weight.sizes().vec()),
                              ": keep it in full precision"));
  PackedNumbers numbers = quantiser == Quantiser::kNf4 ? by_blocks(weight) : by_rows(weight, quantiser);
  numbers.name = name;
  numbers.rows = weight.size(0);
  numbers.columns = weight.size(1);
  Measured measured;
  const size_t scale = measured.magnitude(numbers.scales);
  measured.read();
  if (!std::isfinite(measured.value(scale)))
    throw NumericError(cat(name, ": has weights that are not finite: the model is damaged, download it again"));
  numbers.largest = measured.value(scale) * largest_code(quantiser);
  return PackedMatrix(std::move(numbers));
}

int64_t quantised_bytes(Quantiser quantiser, int64_t rows, int64_t columns) {
  if (quantiser == Quantiser::kNf4)
    return packed_bytes({.packing = MatrixPacking::kBitsAndBytes4, .bits = 4, .block = {1, kNf4Block}}, rows, columns);
  const MatrixPacking packing = quantiser == Quantiser::kInt8 ? MatrixPacking::kBitsAndBytes8 : MatrixPacking::kFloat8;
  return packed_bytes({.packing = packing, .block = {1, 0}}, rows, columns);
}

}  // namespace lancet
