// Source: gguf 0.19, quants.py (quantize_blocks): scales in f32, numbers over their inverse, rounded away from zero,
// and only then the scale to f16.
#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/quant/gguf_blocks.h"
#include "lancet/runtime/devices.h"
#include "numbers/blocks.h"

namespace lancet {
namespace {

constexpr int kBlockNumbers = 32;

void put_half(uint8_t* to, float number) {
  const uint16_t bits = at::Half(number).x;
  std::memcpy(to, &bits, sizeof(bits));
}

/// Of scales whose inverse f32 does not hold, 0: f16 has none of them.
float inverse(float scale) { return std::isfinite(1 / scale) ? 1 / scale : 0; }

float largest_magnitude(const float* numbers) {
  float largest = 0;
  for (int i = 0; i < kBlockNumbers; ++i) largest = std::max(largest, std::abs(numbers[i]));
  return largest;
}

void encode_q8_0(const float* numbers, uint8_t* block) {
  const float scale = largest_magnitude(numbers) / 127, by = inverse(scale);
  put_half(block, scale);
  for (int i = 0; i < kBlockNumbers; ++i)
    block[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(numbers[i] * by)));
}

/// The number of the largest magnitude with its sign, the first of equals.
float signed_largest(const float* numbers) {
  float largest = numbers[0];
  for (int i = 1; i < kBlockNumbers; ++i)
    if (std::abs(numbers[i]) > std::abs(largest)) largest = numbers[i];
  return largest;
}

/// Codes without a sign, of numbers on both sides of 0.
void codes_around(const float* numbers, float scale, float middle, int most, int* codes) {
  const float by = inverse(scale);
  for (int i = 0; i < kBlockNumbers; ++i)
    codes[i] = std::clamp(static_cast<int>(std::trunc(numbers[i] * by + middle)), 0, most);
}

void codes_above(const float* numbers, float least, float scale, int most, int* codes) {
  const float by = inverse(scale);
  for (int i = 0; i < kBlockNumbers; ++i)
    codes[i] = std::clamp(static_cast<int>(std::trunc((numbers[i] - least) * by + 0.5F)), 0, most);
}

void put_low_bits(const int* codes, uint8_t* to) {
  for (int i = 0; i < 16; ++i) to[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[16 + i] & 15) << 4);
}

void put_fifth_bits(const int* codes, uint8_t* to) {
  uint32_t bits = 0;
  for (int i = 0; i < kBlockNumbers; ++i) bits |= static_cast<uint32_t>(codes[i] >> 4 & 1) << i;
  std::memcpy(to, &bits, sizeof(bits));
}

void encode_q4_0(const float* numbers, uint8_t* block) {
  int codes[kBlockNumbers];
  const float scale = signed_largest(numbers) / -8;
  codes_around(numbers, scale, 8.5F, 15, codes);
  put_half(block, scale);
  put_low_bits(codes, block + 2);
}

void encode_q5_0(const float* numbers, uint8_t* block) {
  int codes[kBlockNumbers];
  const float scale = signed_largest(numbers) / -16;
  codes_around(numbers, scale, 16.5F, 31, codes);
  put_half(block, scale);
  put_fifth_bits(codes, block + 2);
  put_low_bits(codes, block + 6);
}

void encode_q4_1(const float* numbers, uint8_t* block) {
  int codes[kBlockNumbers];
  const auto [least, most] = std::minmax_element(numbers, numbers + kBlockNumbers);
  const float scale = (*most - *least) / 15;
  codes_above(numbers, *least, scale, 15, codes);
  put_half(block, scale);
  put_half(block + 2, *least);
  put_low_bits(codes, block + 4);
}

void encode_q5_1(const float* numbers, uint8_t* block) {
  int codes[kBlockNumbers];
  const auto [least, most] = std::minmax_element(numbers, numbers + kBlockNumbers);
  const float scale = (*most - *least) / 31;
  codes_above(numbers, *least, scale, 31, codes);
  put_half(block, scale);
  put_half(block + 2, *least);
  put_fifth_bits(codes, block + 4);
  put_low_bits(codes, block + 8);
}

struct BlockEncoder {
  std::string_view type;
  void (*encode)(const float* numbers, uint8_t* block);
};
constexpr BlockEncoder kBlockEncoders[] = {
    {"Q8_0", encode_q8_0}, {"Q4_0", encode_q4_0}, {"Q4_1", encode_q4_1}, {"Q5_0", encode_q5_0}, {"Q5_1", encode_q5_1}};

const BlockEncoder* encoder_of(const GgufType& type) {
  const auto* found = std::ranges::find(kBlockEncoders, type.name, &BlockEncoder::type);
  return found == std::end(kBlockEncoders) ? nullptr : found;
}

at::ScalarType scalar_type_of(DType dtype) {
  return dtype == DType::kF16    ? at::kHalf
         : dtype == DType::kBF16 ? at::kBFloat16
         : dtype == DType::kF64  ? at::kDouble
                                 : at::kFloat;
}

}  // namespace

bool can_encode(const GgufType& type) { return type.is_plain() || encoder_of(type) != nullptr; }

std::string encodable_types() {
  std::vector<std::string> names;
  for (const GgufType& type : gguf_types())
    if (can_encode(type)) names.emplace_back(type.name);
  return join(names);
}

Tensor encode_blocks(const Tensor& weight, const GgufType& type, const std::string& name) {
  const torch::NoGradGuard no_grad;
  if (!can_encode(type) || weight.size(1) % type.block_numbers != 0)
    throw CheckpointError(cat(name, ": expected rows of whole blocks of one of ", encodable_types(), ", got ",
                              type.name, " and rows of ", weight.size(1)));
  const Tensor numbers = weight.to(Placement::host(), at::kFloat).contiguous();
  if (!numbers.isfinite().all().item<bool>())
    throw NumericError(cat(name, ": expected finite numbers, got others: the edit damaged it"));
  Tensor bytes;
  if (type.is_plain()) {
    bytes = weight.to(Placement::host()).to(scalar_type_of(*type.dtype)).contiguous().view(at::kByte);
  } else {
    const BlockEncoder& encoder = *encoder_of(type);
    const int64_t blocks = numbers.numel() / type.block_numbers;
    bytes = torch::empty({weight.size(0), weight.size(1) / type.block_numbers * type.block_bytes}, at::kByte);
    const float* const from = numbers.const_data_ptr<float>();
    uint8_t* const to = bytes.mutable_data_ptr<uint8_t>();
    at::parallel_for(0, blocks, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        encoder.encode(from + block * type.block_numbers, to + block * type.block_bytes);
    });
  }
  if (!decode_rows_of(bytes, type).isfinite().all().item<bool>())
    throw NumericError(
        cat(name, ": expected numbers that ", type.name, " can hold, got larger ones: write it in another type"));
  return bytes;
}

Tensor decode_rows_of(const Tensor& bytes, const GgufType& type) {
  const torch::NoGradGuard no_grad;
  if (type.is_plain()) return bytes.view(scalar_type_of(*type.dtype)).to(at::kFloat);
  const Tensor out = torch::empty({bytes.size(0), bytes.size(1) / type.block_bytes * type.block_numbers}, at::kFloat);
  decode_blocks(type.number, bytes, out);
  return out;
}

}  // namespace lancet
