// AWQ: words of 8 outputs, in an order of their own; zero points and scales run over the outputs too.
#include <torch/types.h>

#include <array>

#include "codecs.h"

namespace lancet {
namespace {

/// The output at each place of a word.
constexpr std::array<int64_t, 8> kAwqOutput{0, 2, 4, 6, 1, 3, 5, 7};
/// Places of outputs in a word, by its place among eight: the inverse.
constexpr std::array<int64_t, 8> kAwqPlace{0, 4, 1, 5, 2, 6, 3, 7};

/// [n, outputs / 8] u8: of each word the number of one output.
Tensor awq_plane(const Tensor& words, int64_t output) {
  const int64_t place = kAwqPlace[static_cast<size_t>(output)];
  const Tensor bytes = as_bytes(words).unflatten(1, {-1, 4}).select(2, place / 2);
  return place % 2 == 0 ? bytes.bitwise_and(15) : bytes.bitwise_right_shift(4);
}

/// Words along the outputs, [inputs, outputs / 8] i32, as rows of two numbers a byte [outputs, inputs / 2].
Tensor rows_of_awq(const Tensor& words) {
  Tensor rows = torch::empty({words.size(1), 8, words.size(0) / 2}, words.options().dtype(at::kByte));
  for (int64_t output = 0; output < 8; ++output) {
    const Tensor inputs = awq_plane(words, output).unflatten(0, {-1, 2});
    rows.select(1, output).copy_(pairs_of(inputs.select(1, 0), inputs.select(1, 1)).transpose(0, 1));
  }
  return rows.flatten(0, 1);
}

/// Words along the outputs, [groups, outputs / 8] i32, as numbers [groups, outputs] u8.
Tensor load_awq_zeros(const PackedSpec&, const Tensor& words) {
  Tensor numbers = torch::empty({words.size(0), words.size(1), 8}, words.options().dtype(at::kByte));
  for (int64_t output = 0; output < 8; ++output) numbers.select(2, output).copy_(awq_plane(words, output));
  return numbers.flatten(1);
}

/// The inverse, of codes and zero points alike: of numbers [n, outputs] u8 the words [n, outputs / 8] i32.
Tensor pack_awq(const MatrixCode&, const Tensor& numbers) {
  const Tensor grouped = numbers.unflatten(1, {-1, 8});
  std::vector<Tensor> bytes;
  for (size_t i = 0; i < kAwqOutput.size(); i += 2)
    bytes.push_back(pairs_of(grouped.select(2, kAwqOutput[i]), grouped.select(2, kAwqOutput[i + 1])));
  return torch::stack(bytes, 2).flatten(1).view(at::kInt);
}

SettleCodes assemble_awq(Assembly& assembly) {
  assembly.take_whole_codes(rows_of_awq(assembly.part(PartRole::kCodes)));
  assembly.take_scales_of_outputs();
  const MeasuredZeros zeros = assembly.measure_zeros(load_awq_zeros(assembly.spec(), assembly.part(PartRole::kZeros)));
  return [&assembly, zeros] { return assembly.settle_whole(zeros); };
}

NumberLine awq_line(const PackedSpec& spec, at::ScalarType scale_type, at::Device) {
  return NumberLine::whole(spec.code, scale_type);
}

}  // namespace

constexpr MatrixCodec kAwqCodec{.packing = MatrixPacking::kAwq,
                                .assemble = assemble_awq,
                                .line = awq_line,
                                .store_codes = pack_awq,
                                .load_zeros = load_awq_zeros,
                                .store_zeros = pack_awq,
                                .has_outputs_last = true};

}  // namespace lancet
