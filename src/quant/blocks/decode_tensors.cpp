#include "decode_tensors.h"

#include <torch/types.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace lancet {
namespace {

/// Some bytes of each block: [n, count].
Tensor bytes_at(const Tensor& blocks, int64_t begin, int64_t count) { return blocks.narrow(1, begin, count); }

/// A number of f16 of each block: [n, 1] f32.
Tensor half_column(const Tensor& blocks, int64_t begin) {
  return bytes_at(blocks, begin, 2).contiguous().view(at::kHalf).to(at::kFloat);
}

/// All bytes shifted by the first number of bits, then all by the second, and so on: [n, shifts * bytes].
Tensor shifted(const Tensor& bytes, std::initializer_list<int64_t> shifts, int64_t mask) {
  std::vector<Tensor> pieces;
  for (const int64_t shift : shifts) pieces.push_back(bytes.bitwise_right_shift(shift).bitwise_and_(mask));
  return torch::cat(pieces, 1);
}

/// Each bit of each byte, the lowest first: [n, 8 * bytes].
Tensor each_bit(const Tensor& bytes) {
  std::vector<Tensor> pieces;
  for (int64_t bit = 0; bit < 8; ++bit) pieces.push_back(bytes.bitwise_right_shift(bit).bitwise_and_(1));
  return torch::stack(pieces, 2).flatten(1);
}

/// The results of `take` for parts of the bytes, one after the other.
template <typename Take>
Tensor of_each(const Tensor& blocks, std::initializer_list<int64_t> begins, int64_t count, const Take& take) {
  std::vector<Tensor> pieces;
  for (const int64_t begin : begins) pieces.push_back(take(bytes_at(blocks, begin, count)));
  return torch::cat(pieces, 1);
}

/// [n, parts, numbers of a part], a view.
Tensor in_parts(const Tensor& out, int64_t parts) { return out.unflatten(1, {parts, -1}); }

Tensor four_bits(const Tensor& bytes) { return shifted(bytes, {0, 4}, 15); }
Tensor two_bits(const Tensor& bytes) { return shifted(bytes, {0, 2, 4, 6}, 3); }
Tensor single_bits(const Tensor& bytes) { return shifted(bytes, {0, 1, 2, 3, 4, 5, 6, 7}, 1); }

void decode_q4_0(const Tensor& blocks, const Tensor& out) {
  out.copy_(four_bits(bytes_at(blocks, 2, 16))).sub_(8).mul_(half_column(blocks, 0));
}

void decode_q4_1(const Tensor& blocks, const Tensor& out) {
  out.copy_(four_bits(bytes_at(blocks, 4, 16))).mul_(half_column(blocks, 0)).add_(half_column(blocks, 2));
}

Tensor five_bits(const Tensor& blocks, int64_t begin) {
  const Tensor high = each_bit(bytes_at(blocks, begin, 4)).bitwise_left_shift_(4);
  return four_bits(bytes_at(blocks, begin + 4, 16)).bitwise_or_(high);
}

void decode_q5_0(const Tensor& blocks, const Tensor& out) {
  out.copy_(five_bits(blocks, 2)).sub_(16).mul_(half_column(blocks, 0));
}

void decode_q5_1(const Tensor& blocks, const Tensor& out) {
  out.copy_(five_bits(blocks, 4)).mul_(half_column(blocks, 0)).add_(half_column(blocks, 2));
}

void decode_q8_0(const Tensor& blocks, const Tensor& out) {
  out.copy_(bytes_at(blocks, 2, 32).view(at::kChar)).mul_(half_column(blocks, 0));
}

void decode_q2_k(const Tensor& blocks, const Tensor& out) {
  const Tensor scales = bytes_at(blocks, 0, 16);
  const Tensor by = half_column(blocks, 80) * scales.bitwise_and(15);
  const Tensor low = half_column(blocks, 82) * scales.bitwise_right_shift(4);
  out.copy_(of_each(blocks, {16, 48}, 32, two_bits));
  in_parts(out, 16).mul_(by.unsqueeze(2)).sub_(low.unsqueeze(2));
}

void decode_q3_k(const Tensor& blocks, const Tensor& out) {
  const Tensor high = two_bits(bytes_at(blocks, 104, 4)).bitwise_left_shift_(4);
  const Tensor scales = four_bits(bytes_at(blocks, 96, 8)).bitwise_or_(high);
  const Tensor by = half_column(blocks, 108) * (scales.to(at::kFloat) - 32);
  const Tensor third_bits = single_bits(bytes_at(blocks, 0, 32)).bitwise_left_shift_(2);
  out.copy_(of_each(blocks, {32, 64}, 32, two_bits).bitwise_or_(third_bits)).sub_(4);
  in_parts(out, 16).mul_(by.unsqueeze(2));
}

/// Of Q4_K and Q5_K: scales and least numbers of 6 bits in the bytes 4 to 15.
void scale_by_six_bits(const Tensor& blocks, const Tensor& out) {
  const Tensor first = bytes_at(blocks, 4, 4), second = bytes_at(blocks, 8, 4), third = bytes_at(blocks, 12, 4);
  const auto highest = [](const Tensor& bytes) { return bytes.bitwise_right_shift(2).bitwise_and_(0x30); };
  const Tensor scales = torch::cat({first.bitwise_and(63), third.bitwise_and(15).bitwise_or_(highest(first))}, 1);
  const Tensor leasts =
      torch::cat({second.bitwise_and(63), third.bitwise_right_shift(4).bitwise_or_(highest(second))}, 1);
  const Tensor by = half_column(blocks, 0) * scales, low = half_column(blocks, 2) * leasts;
  in_parts(out, 8).mul_(by.unsqueeze(2)).sub_(low.unsqueeze(2));
}

void decode_q4_k(const Tensor& blocks, const Tensor& out) {
  out.copy_(of_each(blocks, {16, 48, 80, 112}, 32, four_bits));
  scale_by_six_bits(blocks, out);
}

void decode_q5_k(const Tensor& blocks, const Tensor& out) {
  const Tensor high = single_bits(bytes_at(blocks, 16, 32)).bitwise_left_shift_(4);
  out.copy_(of_each(blocks, {48, 80, 112, 144}, 32, four_bits).bitwise_or_(high));
  scale_by_six_bits(blocks, out);
}

void decode_q6_k(const Tensor& blocks, const Tensor& out) {
  const Tensor high = of_each(blocks, {128, 160}, 32, two_bits).bitwise_left_shift_(4);
  out.copy_(of_each(blocks, {0, 64}, 64, four_bits).bitwise_or_(high)).sub_(32);
  const Tensor by = half_column(blocks, 208) * bytes_at(blocks, 192, 16).view(at::kChar);
  in_parts(out, 16).mul_(by.unsqueeze(2));
}

void decode_tq2_0(const Tensor& blocks, const Tensor& out) {
  out.copy_(of_each(blocks, {0, 32}, 32, two_bits)).sub_(1).mul_(half_column(blocks, 64));
}

struct TensorDecoder {
  std::string_view type;  ///< GgufType::name
  void (*decode)(const Tensor& blocks, const Tensor& out);
};
constexpr TensorDecoder kTensorDecoders[] = {
    {"Q4_0", decode_q4_0}, {"Q4_1", decode_q4_1}, {"Q5_0", decode_q5_0},   {"Q5_1", decode_q5_1},
    {"Q8_0", decode_q8_0}, {"Q2_K", decode_q2_k}, {"Q3_K", decode_q3_k},   {"Q4_K", decode_q4_k},
    {"Q5_K", decode_q5_k}, {"Q6_K", decode_q6_k}, {"TQ2_0", decode_tq2_0},
};

const TensorDecoder* tensor_decoder_of(std::string_view type) {
  const auto* found = std::ranges::find(kTensorDecoders, type, &TensorDecoder::type);
  return found == std::end(kTensorDecoders) ? nullptr : found;
}

}  // namespace

bool has_tensor_decoder(std::string_view type) { return tensor_decoder_of(type) != nullptr; }

void decode_with_tensors(std::string_view type, const Tensor& bytes, const Tensor& out) {
  const TensorDecoder* decoder = tensor_decoder_of(type);
  if (decoder == nullptr) throw std::logic_error(std::string(type) + ": has no chain of operations");
  decoder->decode(bytes, out);
}

}  // namespace lancet
