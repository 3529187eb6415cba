// GPTQ: words, zero points and scales run over the outputs.
#include <torch/types.h>

#include <array>

#include "codecs.h"

namespace lancet {
namespace {

/// What GPTQ's first format takes from a word of zero points of 2, 4 or 8 bits.
int64_t ones_of_words(int64_t bits) { return bits == 2 ? 0x55555555 : bits == 4 ? 0x11111111 : 0x01010101; }

/// Numbers [groups, outputs] u8 of words [groups, outputs * bits / 32] i32. The first format has them less one: words
/// that are less one in each number, where a number of 0 takes from its neighbour, and so is one added. Numbers of 3
/// bits do not end with words: each for itself.
Tensor unpack_zeros(const PackedSpec& spec, const Tensor& words) {
  const int64_t bits = spec.code.bits;
  if (spec.code.zeros == ZeroPoints::kStored) return unpack_words(words, bits, spec.rows);
  if (bits != 3) return unpack_words(words + ones_of_words(bits), bits, spec.rows);
  return unpack_words(words, bits, spec.rows).add_(1).bitwise_and_(7);
}

/// Whether the file's zero points are all 4 in one of two ways of writing them.
bool has_two_readings(const MatrixCode& code) {
  return code.bits == 3 && code.symmetric && code.zeros == ZeroPoints::kStoredLessOne;
}

/// Zero points of symmetric files of 3 bits, read as those are meant whose program took these words from theirs, and
/// later adds them.
Tensor zeros_by_words(const PackedSpec& spec, const Tensor& words) {
  Tensor sums = words.clone();
  constexpr std::array<int32_t, 3> kWords{0x24924924, static_cast<int32_t>(0x92492492), 0x49249249};
  for (int64_t i = 0; i < 3; ++i) sums.unflatten(1, {-1, 3}).select(2, i).add_(kWords[static_cast<size_t>(i)]);
  return unpack_words(sums, 3, spec.rows);
}

SettleCodes assemble_gptq(Assembly& assembly) {
  const PackedSpec& spec = assembly.spec();
  const Tensor stored = assembly.part(PartRole::kZeros);
  const Tensor words = as_bytes(assembly.part(PartRole::kCodes));
  assembly.take_whole_codes(words.unflatten(1, {-1, 4}).transpose(0, 1).contiguous().flatten(1));
  assembly.take_scales_of_outputs();
  assembly.take_order();
  const MeasuredZeros zeros = assembly.measure_zeros(unpack_zeros(spec, stored));
  if (!has_two_readings(spec.code)) return [&assembly, zeros] { return assembly.settle_whole(zeros); };
  const MeasuredZeros other = assembly.measure_zeros(zeros_by_words(spec, stored));
  // Symmetric numbers of 3 bits have 4 for a zero point, and that tells which program wrote the file.
  return [&assembly, zeros, other] {
    const auto is_half = [&](const MeasuredZeros& read) {
      return assembly.measured().value(read.least) == 4 && assembly.measured().value(read.most) == 4;
    };
    if (!is_half(zeros) && !is_half(other))
      assembly.problem(PartRole::kZeros, "expected zero points of 4 in a symmetric file of 3 bits, got others");
    return assembly.settle_whole(is_half(other) && !is_half(zeros) ? other : zeros);
  };
}

NumberLine gptq_line(const PackedSpec& spec, at::ScalarType scale_type, at::Device) {
  return NumberLine::whole(spec.code, scale_type);
}

Tensor store_gptq_codes(const MatrixCode& code, const Tensor& codes) {
  return pack_words(codes.transpose(0, 1).contiguous(), code.bits).transpose(0, 1).contiguous();
}

Tensor load_gptq_zeros(const PackedSpec& spec, const Tensor& stored) {
  // assemble() took one of the two readings
  if (has_two_readings(spec.code))
    return torch::full({stored.size(0), spec.rows}, 4, stored.options().dtype(at::kByte));
  return unpack_zeros(spec, stored);
}

Tensor store_gptq_zeros(const MatrixCode& code, const Tensor& zeros) {
  if (code.zeros == ZeroPoints::kStored) return pack_words(zeros, code.bits);
  if (code.bits == 3) return pack_words((zeros - 1).bitwise_and_(7), code.bits);
  return pack_words(zeros, code.bits) - ones_of_words(code.bits);
}

/// Adds the tensors that GPTQModel, nn_modules/qlinear/torch.py, writes.
void add_gptq_parts(NewParts& parts) {
  const MatrixCode& code = parts.code();
  const int64_t rows = parts.rows(), columns = parts.columns(), groups = parts.groups();
  if (code.zeros == ZeroPoints::kNone || code.block.rows != 1) parts.refuse("zero points, and scales of a row each");
  parts.need_words(columns, "columns");
  parts.need_words(rows, "rows");
  parts.add(PartRole::kCodes, ".qweight", at::kInt, {columns * code.bits / 32, rows});
  parts.add(PartRole::kZeros, ".qzeros", at::kInt, {groups, rows * code.bits / 32});
  parts.add(PartRole::kScales, ".scales", at::kHalf, {groups, rows});
  const auto options = torch::TensorOptions(at::kInt).device(parts.device());
  parts.add(PartRole::kOrder, ".g_idx", torch::arange(columns, options).div_(columns / groups, "floor"));
}

}  // namespace

constexpr MatrixCodec kGptqCodec{.packing = MatrixPacking::kGptq,
                                 .assemble = assemble_gptq,
                                 .line = gptq_line,
                                 .store_codes = store_gptq_codes,
                                 .load_zeros = load_gptq_zeros,
                                 .store_zeros = store_gptq_zeros,
                                 .add_parts = add_gptq_parts,
                                 .has_outputs_last = true};

}  // namespace lancet
