// bitsandbytes: 4 bits by a table of 16 numbers, with scales of blocks of the flattened matrix; and whole numbers of a
// byte, a scale a row, which is the row's largest number.
#include <torch/types.h>

#include <algorithm>

#include "codecs.h"
#include "lancet/core/strings.h"
#include "numbers/number_tables.h"
#include "numbers/quantise_rows.h"

namespace lancet {
namespace {

SettleCodes assemble_4_bits(Assembly& assembly) {
  const PackedSpec& spec = assembly.spec();
  PackedNumbers& numbers = assembly.numbers();
  numbers.codes = as_bytes(assembly.part(PartRole::kCodes).flatten()).view({spec.rows, spec.columns / 2});
  numbers.kind = CodeKind::kPairs;
  numbers.flat_block = spec.block_size;
  numbers.scales = assembly.part(PartRole::kScales).contiguous();
  if (spec.code.nested)
    numbers.nested = {.table = assembly.part(PartRole::kNestedTable).contiguous(),
                      .scales = assembly.part(PartRole::kNestedScales).contiguous(),
                      .block_size = spec.nested_block_size,
                      .offset = static_cast<double>(static_cast<float>(spec.nested_offset))};
  const std::array<float, 16>& known = numbers_of(spec.table);
  const Tensor table = torch::tensor(std::vector<float>(known.begin(), known.end())).to(numbers.codes.device());
  const size_t error = assembly.measured().magnitude(assembly.part(PartRole::kTable) - table);
  return [&assembly, error] {
    constexpr double kRounding = 1e-6;
    const NumberTable numbers_table = assembly.spec().table;
    assembly.set_pairs(numbers_of(numbers_table), PairOrder::kHighFirst);
    if (!(assembly.measured().value(error) <= kRounding))
      assembly.problem(PartRole::kTable,
                       cat("expected the numbers of ", numbers_table == NumberTable::kNf4 ? "nf4" : "fp4",
                           ", got others: a table of its own is not read"));
    return 1.0;
  };
}

NumberLine line_of_4_bits(const PackedSpec& spec, at::ScalarType, at::Device device) {
  return NumberLine::table(numbers_of(spec.table), device);
}

Tensor store_4_bits(const MatrixCode&, const Tensor& codes) {
  const Tensor pairs = codes.transpose(0, 1).contiguous().view({-1, 2});
  return pairs_of(pairs.select(1, 1), pairs.select(1, 0));
}

/// Codes and scales of blocks. `flat`: whole ones, or a last one that is shorter.
RowCodes nf4_blocks(const Tensor& flat, const Tensor& borders, int64_t block_size) {
  const int64_t n = flat.size(0), block = std::min(block_size, n);
  const Tensor blocks = flat.view({n / block, block});
  const Tensor scales = blocks.abs().amax(1);
  const Tensor inverse = scales.clamp_min(kLeastDivisor).reciprocal_().unsqueeze(1);
  const Tensor codes = at::bucketize((blocks * inverse).clamp_(-1, 1), borders, /*out_int32=*/true).view({n / 2, 2});
  return {codes.select(1, 0).bitwise_left_shift(4).bitwise_or_(codes.select(1, 1)).to(at::kByte), scales};
}

Tensor nf4_borders(at::Device device) {
  std::vector<float> borders;
  for (size_t i = 0; i + 1 < kNf4Numbers.size(); ++i) borders.push_back((kNf4Numbers[i] + kNf4Numbers[i + 1]) / 2);
  return torch::tensor(borders).to(device);
}

/// Quantises as bitsandbytes does, backends/default/ops.py (quantize_4bit).
PackedNumbers quantise_nf4(const Tensor& weight, const MatrixCode& code) {
  const Tensor flat = weight.contiguous().flatten(), borders = nf4_borders(weight.device());
  const int64_t block = code.block.columns;
  const int64_t n = flat.size(0), blocks = blocks_of(n, block), whole = n / block * block;
  const int64_t step = rows_at_a_time(block, weight.device()) * block;
  PackedNumbers numbers;
  numbers.codes = torch::empty({n / 2}, weight.options().dtype(at::kByte));
  numbers.scales = torch::empty({blocks}, weight.options().dtype(at::kFloat));
  for (int64_t at = 0; at < n;) {
    const int64_t some = at < whole ? std::min(step, whole - at) : n - at;
    const RowCodes piece = nf4_blocks(flat.narrow(0, at, some).to(at::kFloat), borders, block);
    numbers.codes.narrow(0, at / 2, some / 2).copy_(piece.codes);
    numbers.scales.narrow(0, at / block, piece.scales.size(0)).copy_(piece.scales);
    at += some;
  }
  numbers.codes = numbers.codes.view({weight.size(0), weight.size(1) / 2});
  numbers.kind = CodeKind::kPairs;
  numbers.bits = 4;
  numbers.flat_block = block;
  numbers.pairs = pair_table(kNf4Numbers, PairOrder::kHighFirst, at::kFloat, weight.device());
  numbers.largest = 1;
  return numbers;
}

SettleCodes assemble_8_bits(Assembly& assembly) {
  assembly.numbers().codes = assembly.part(PartRole::kCodes).contiguous();
  assembly.numbers().factor = kInt8Factor;
  assembly.take_scales(at::kFloat);
  return [] { return kLargestOfSignedByte; };
}

NumberLine line_of_8_bits(const PackedSpec&, at::ScalarType, at::Device) { return NumberLine::by_largest(); }

Tensor store_8_bits(const MatrixCode&, const Tensor& codes) { return codes.transpose(0, 1).bitwise_xor(kSignOfByte); }

/// Adds the tensors that bitsandbytes, nn/modules.py (Linear8bitLt), writes.
void add_8_bit_parts(NewParts& parts) {
  parts.add(PartRole::kCodes, ".weight", at::kChar, {parts.rows(), parts.columns()});
  parts.add(PartRole::kScales, ".SCB", at::kFloat, {parts.rows()});
  parts.add(PartRole::kRecord, ".weight_format", at::kByte, {});  // 0: row by row
}

RowCodes int8_rows(const Tensor& rows) {
  const Tensor scales = rows.abs().amax(1, /*keepdim=*/true);
  const Tensor numbers = rows * (127.0 / scales);  // a row of zeros: 0 times infinity
  return {numbers.round_().nan_to_num_(0).to(at::kChar), scales};
}

/// Quantises as bitsandbytes does, backends/default/ops.py (int8_vectorwise_quant).
PackedNumbers quantise_int8(const Tensor& weight, const MatrixCode&) {
  PackedNumbers numbers = quantise_rows(weight, at::kChar, int8_rows);
  numbers.factor = kInt8Factor;
  numbers.largest = 127 * kInt8Factor;
  return numbers;
}

}  // namespace

constexpr MatrixCodec kBitsAndBytes4Codec{.packing = MatrixPacking::kBitsAndBytes4,
                                          .assemble = assemble_4_bits,
                                          .line = line_of_4_bits,
                                          .store_codes = store_4_bits,
                                          .has_flat_blocks = true,
                                          .quantise = quantise_nf4};

constexpr MatrixCodec kBitsAndBytes8Codec{.packing = MatrixPacking::kBitsAndBytes8,
                                          .assemble = assemble_8_bits,
                                          .line = line_of_8_bits,
                                          .store_codes = store_8_bits,
                                          .add_parts = add_8_bit_parts,
                                          .quantise = quantise_int8};

}  // namespace lancet
