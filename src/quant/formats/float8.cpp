// E4M3, of all methods that store it: a byte a number in the matrix's own shape.
#include <torch/types.h>

#include "codecs.h"
#include "numbers/number_tables.h"
#include "numbers/quantise_rows.h"

namespace lancet {
namespace {

SettleCodes assemble_float8(Assembly& assembly) {
  PackedNumbers& numbers = assembly.numbers();
  numbers.codes = assembly.part(PartRole::kCodes).contiguous();
  const bool in_scale_type = assembly.spec().code.in_scale_type;
  assembly.take_scales(in_scale_type ? assembly.part(PartRole::kScales).scalar_type() : at::kFloat);
  const size_t nan = assembly.measured().not_a_number(numbers.codes);
  return [&assembly, nan] {
    if (assembly.measured().value(nan) != 0)
      assembly.problem(PartRole::kCodes, "has numbers that are NaN: the file is damaged, download it again");
    return kLargestFloat8;
  };
}

NumberLine float8_line(const PackedSpec& spec, at::ScalarType scale_type, at::Device) {
  return NumberLine::float8(spec.code.in_scale_type ? scale_type : at::kFloat);
}

Tensor store_float8_codes(const MatrixCode&, const Tensor& codes) { return codes.transpose(0, 1); }

/// Adds the tensors that transformers, integrations/finegrained_fp8.py and fbgemm_fp8.py, and compressed-tensors,
/// compressors/, write.
void add_float8_parts(NewParts& parts) {
  const MatrixCode& code = parts.code();
  const bool is_of_blocks = code.block.rows > 1 && !code.in_scale_type;
  parts.add(PartRole::kCodes, ".weight", at::kFloat8_e4m3fn, {parts.rows(), parts.columns()});
  parts.add(PartRole::kScales, is_of_blocks ? ".weight_scale_inv" : ".weight_scale",
            code.in_scale_type ? at::kBFloat16 : at::kFloat, parts.scale_shape());
}

RowCodes float8_rows(const Tensor& rows) {
  const Tensor largest = rows.abs().amax(1, /*keepdim=*/true);
  const Tensor scales = largest / torch::full_like(largest, kLargestFloat8);  // by a number a GPU multiplies
  const Tensor numbers = rows / scales.where(scales > 0, torch::ones_like(scales));
  return {numbers.clamp_(-kLargestFloat8, kLargestFloat8).to(at::kFloat8_e4m3fn), scales};
}

/// Quantises as compressed-tensors does, quantization/lifecycle (E4M3, a channel).
PackedNumbers quantise_float8(const Tensor& weight, const MatrixCode&) {
  PackedNumbers numbers = quantise_rows(weight, at::kFloat8_e4m3fn, float8_rows);
  numbers.largest = kLargestFloat8;
  return numbers;
}

}  // namespace

constexpr MatrixCodec kFloat8Codec{.packing = MatrixPacking::kFloat8,
                                   .assemble = assemble_float8,
                                   .line = float8_line,
                                   .store_codes = store_float8_codes,
                                   .add_parts = add_float8_parts,
                                   .quantise = quantise_float8};

}  // namespace lancet
