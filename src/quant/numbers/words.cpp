#include "words.h"

#include <torch/types.h>

#include <bit>

#include "lancet/runtime/devices.h"
#include "lancet/runtime/send.h"

namespace lancet {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as their bytes, the lowest first");

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

Tensor pack_words(const Tensor& numbers, int64_t bits) {
  const int64_t bytes = bits == 3 ? 3 : 1, places = 8 * bytes / bits, step = bits == 3 ? 32 : 32 / bits;
  const int64_t rest = (step - numbers.size(1) % step) % step;
  const Tensor full = rest == 0 ? numbers : at::constant_pad_nd(numbers, {0, rest}, 0);
  if (bits == 8) return full.contiguous().view(at::kInt);
  const Tensor grouped = full.unflatten(1, {-1, places});
  Tensor joined = grouped.select(2, 0).to(at::kInt);
  for (int64_t i = 1; i < places; ++i) joined.add_(grouped.select(2, i).to(at::kInt), int64_t{1} << (i * bits));
  std::vector<Tensor> of_bytes;
  for (int64_t i = 0; i < bytes; ++i)
    of_bytes.push_back(joined.bitwise_right_shift(8 * i).bitwise_and_(0xff).to(at::kByte));
  return torch::stack(of_bytes, 2).flatten(1).view(at::kInt);
}

Tensor pairs_of(const Tensor& low, const Tensor& high) { return high.bitwise_left_shift(4).bitwise_or_(low); }

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
