#include "pack_words.h"

#include <torch/types.h>

#include <array>

namespace lancet {
namespace {

/// The output at each place of a word of AWQ.
constexpr std::array<int64_t, 8> kAwqOutput{0, 2, 4, 6, 1, 3, 5, 7};

Tensor pairs_of(const Tensor& low, const Tensor& high) { return high.bitwise_left_shift(4).bitwise_or_(low); }

}  // namespace

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

Tensor words_of_inputs(const Tensor& numbers, int64_t bits) {
  return pack_words(numbers.transpose(0, 1).contiguous(), bits).transpose(0, 1).contiguous();
}

Tensor pack_awq(const Tensor& numbers) {
  const Tensor grouped = numbers.unflatten(1, {-1, 8});
  std::vector<Tensor> bytes;
  for (size_t i = 0; i < kAwqOutput.size(); i += 2)
    bytes.push_back(pairs_of(grouped.select(2, kAwqOutput[i]), grouped.select(2, kAwqOutput[i + 1])));
  return torch::stack(bytes, 2).flatten(1).view(at::kInt);
}

}  // namespace lancet
