#include "words.h"

#include <torch/types.h>

#include <array>
#include <bit>

#include "lancet/runtime/placement.h"
#include "lancet/runtime/send.h"

namespace lancet {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as their bytes, the lowest first");

/// Where in a word of AWQ an output is, by its place among eight: the file has them as 0, 2, 4, 6, 1, 3, 5, 7.
constexpr std::array<int64_t, 8> kAwqPlace{0, 4, 1, 5, 2, 6, 3, 7};

/// [n, outputs / 8] u8: of each word the number of one output.
Tensor awq_plane(const Tensor& words, int64_t output) {
  const int64_t place = kAwqPlace[static_cast<size_t>(output)];
  const Tensor bytes = as_bytes(words).unflatten(1, {-1, 4}).select(2, place / 2);
  return place % 2 == 0 ? bytes.bitwise_and(15) : bytes.bitwise_right_shift(4);
}

}  // namespace

Tensor as_bytes(const Tensor& tensor) { return tensor.contiguous().view(at::kByte); }

Tensor joined_bytes(const Tensor& bytes, int64_t group) {
  const Tensor grouped = bytes.unflatten(1, {-1, group});
  Tensor joined = grouped.select(2, 0).to(at::kInt);
  for (int64_t i = 1; i < group; ++i) joined.add_(grouped.select(2, i).to(at::kInt), 1 << (8 * i));
  return joined;
}

Tensor unpack_words(const Tensor& words, int64_t bits, int64_t count) {
  const Tensor bytes = as_bytes(words);
  if (bits == 8) return bytes.narrow(1, 0, count);
  const int64_t group = bits == 3 ? 3 : 1, places = 8 * group / bits;
  const Tensor all = joined_bytes(bytes, group);
  std::vector<Tensor> numbers;
  for (int64_t i = 0; i < places; ++i)
    numbers.push_back(all.bitwise_right_shift(i * bits).bitwise_and_((int64_t{1} << bits) - 1).to(at::kByte));
  return torch::stack(numbers, 2).flatten(1).narrow(1, 0, count);
}

Tensor rows_of_words(const Tensor& words) {
  return as_bytes(words).unflatten(1, {-1, 4}).transpose(0, 1).contiguous().flatten(1);
}

int64_t ones_of_words(int64_t bits) { return bits == 2 ? 0x55555555 : bits == 4 ? 0x11111111 : 0x01010101; }

Tensor unpack_gptq_zeros(const Tensor& words, int64_t bits, int64_t outputs, ZeroPoints zeros) {
  if (zeros == ZeroPoints::kStored) return unpack_words(words, bits, outputs);
  if (bits != 3) return unpack_words(words + ones_of_words(bits), bits, outputs);
  return unpack_words(words, bits, outputs).add_(1).bitwise_and_(7);
}

Tensor unpack_awq(const Tensor& words) {
  Tensor numbers = torch::empty({words.size(0), words.size(1), 8}, words.options().dtype(at::kByte));
  for (int64_t output = 0; output < 8; ++output) numbers.select(2, output).copy_(awq_plane(words, output));
  return numbers.flatten(1);
}

Tensor rows_of_awq(const Tensor& words) {
  Tensor rows = torch::empty({words.size(1), 8, words.size(0) / 2}, words.options().dtype(at::kByte));
  for (int64_t output = 0; output < 8; ++output) {
    const Tensor inputs = awq_plane(words, output).unflatten(0, {-1, 2});
    rows.select(1, output).copy_(
        inputs.select(1, 1).bitwise_left_shift(4).bitwise_or_(inputs.select(1, 0)).transpose(0, 1));
  }
  return rows.flatten(0, 1);
}

Tensor pair_table(std::span<const float> values, PairOrder order, at::ScalarType type, at::Device device) {
  const Tensor table = torch::empty({256, 2}, torch::TensorOptions(at::kFloat).device(Placement::host()));
  auto numbers = table.accessor<float, 2>();
  for (int64_t byte = 0; byte < 256; ++byte) {
    const auto low = values[static_cast<size_t>(byte % 16)], high = values[static_cast<size_t>(byte / 16)];
    numbers[byte][0] = order == PairOrder::kLowFirst ? low : high;
    numbers[byte][1] = order == PairOrder::kLowFirst ? high : low;
  }
  const Tensor pairs = table.to(type).view(type == at::kFloat ? at::kLong : at::kInt).flatten();
  return sent_to(device, pairs);
}

}  // namespace lancet
