#include "blocks.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_types.h"
#include "lancet/runtime/devices.h"
#include "packed_numbers.h"

namespace lancet {
namespace {

using Bytes = const uint8_t*;

float half_at(Bytes at) {
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return static_cast<float>(at::Half(bits, at::Half::from_bits()));
}

float number(int value) { return static_cast<float>(value); }
int signed_byte(uint8_t byte) { return static_cast<int8_t>(byte); }

// ---- 32 numbers a block

void decode_q4_0(Bytes block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * number((block[2 + i] & 15) - 8);
    out[16 + i] = scale * number((block[2 + i] >> 4) - 8);
  }
}

void decode_q4_1(Bytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * number(block[4 + i] & 15) + least;
    out[16 + i] = scale * number(block[4 + i] >> 4) + least;
  }
}

uint32_t word_at(Bytes at) {
  uint32_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

void decode_q5_0(Bytes block, float* out) {
  const float scale = half_at(block);
  const uint32_t high = word_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    const auto low_bit = static_cast<int>(high >> i & 1U) << 4, high_bit = static_cast<int>(high >> (i + 16) & 1U) << 4;
    out[i] = scale * number(((block[6 + i] & 15) | low_bit) - 16);
    out[16 + i] = scale * number(((block[6 + i] >> 4) | high_bit) - 16);
  }
}

void decode_q5_1(Bytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  const uint32_t high = word_at(block + 4);
  for (int i = 0; i < 16; ++i) {
    const auto low_bit = static_cast<int>(high >> i & 1U) << 4, high_bit = static_cast<int>(high >> (i + 16) & 1U) << 4;
    out[i] = scale * number((block[8 + i] & 15) | low_bit) + least;
    out[16 + i] = scale * number((block[8 + i] >> 4) | high_bit) + least;
  }
}

void decode_q8_0(Bytes block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = scale * number(signed_byte(block[2 + i]));
}

constexpr std::array<float, 16> kIq4Numbers{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void decode_iq4_nl(Bytes block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * kIq4Numbers[block[2 + i] & 15];
    out[16 + i] = scale * kIq4Numbers[block[2 + i] >> 4];
  }
}

/// Twice the numbers of E2M1; scales are half of what the exponent says.
constexpr std::array<float, 16> kMxfp4Numbers{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void decode_mxfp4(Bytes block, float* out) {
  const uint32_t exponent = block[0];
  const uint32_t bits = exponent < 2 ? uint32_t{0x00200000} << exponent : (exponent - 1) << 23;
  const auto scale = std::bit_cast<float>(bits);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * kMxfp4Numbers[block[1 + i] & 15];
    out[16 + i] = scale * kMxfp4Numbers[block[1 + i] >> 4];
  }
}

// ---- 256 numbers a block

void decode_q2_k(Bytes block, float* out) {
  const Bytes scales = block, codes = block + 16;
  const float scale = half_at(block + 80), least = half_at(block + 82);
  for (int part = 0; part < 16; ++part) {
    const float own = scale * number(scales[part] & 15), low = least * number(scales[part] >> 4);
    const Bytes from = codes + part / 8 * 32 + part % 2 * 16;
    const int shift = part % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) out[part * 16 + i] = own * number(from[i] >> shift & 3) - low;
  }
}

void decode_q3_k(Bytes block, float* out) {
  const Bytes mask = block, codes = block + 32, scales = block + 96;
  const float scale = half_at(block + 108);
  for (int part = 0; part < 16; ++part) {
    const int low = part < 8 ? scales[part] & 15 : scales[part - 8] >> 4;
    const int high = scales[8 + part % 4] >> (part / 4 * 2) & 3;
    const float own = scale * number((low | high << 4) - 32);
    const Bytes from = codes + part / 8 * 32 + part % 2 * 16, masked = mask + part % 2 * 16;
    const int shift = part % 8 / 2 * 2, bit = part / 2;
    for (int i = 0; i < 16; ++i)
      out[part * 16 + i] = own * number((from[i] >> shift & 3) - ((masked[i] >> bit & 1) != 0 ? 0 : 4));
  }
}

/// Scale and least number of each of 8 parts, 6 bits each.
struct SixBits {
  int scale, least;
};
SixBits six_bits(Bytes scales, int part) {
  if (part < 4) return {scales[part] & 63, scales[4 + part] & 63};
  return {(scales[4 + part] & 15) | (scales[part - 4] >> 2 & 0x30),
          (scales[4 + part] >> 4) | (scales[part] >> 2 & 0x30)};
}

void decode_q4_k(Bytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  const Bytes scales = block + 4, codes = block + 16;
  for (int part = 0; part < 8; ++part) {
    const SixBits own = six_bits(scales, part);
    const float by = scale * number(own.scale), low = least * number(own.least);
    const Bytes from = codes + part / 2 * 32;
    const int shift = part % 2 * 4;
    for (int i = 0; i < 32; ++i) out[part * 32 + i] = by * number(from[i] >> shift & 15) - low;
  }
}

void decode_q5_k(Bytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  const Bytes scales = block + 4, high = block + 16, codes = block + 48;
  for (int part = 0; part < 8; ++part) {
    const SixBits own = six_bits(scales, part);
    const float by = scale * number(own.scale), low = least * number(own.least);
    const Bytes from = codes + part / 2 * 32;
    const int shift = part % 2 * 4;
    for (int i = 0; i < 32; ++i)
      out[part * 32 + i] = by * number((from[i] >> shift & 15) | (high[i] >> part & 1) << 4) - low;
  }
}

void decode_q6_k(Bytes block, float* out) {
  const Bytes low = block, high = block + 128, scales = block + 192;
  const float scale = half_at(block + 208);
  for (int part = 0; part < 16; ++part) {
    const int half = part / 8, quarter = part % 8 / 2, from = part % 2 * 16;
    const float own = scale * number(signed_byte(scales[part]));
    const Bytes lows = low + half * 64 + quarter % 2 * 32 + from, highs = high + half * 32 + from;
    const int shift = quarter / 2 * 4;
    for (int i = 0; i < 16; ++i)
      out[part * 16 + i] = own * number(((lows[i] >> shift & 15) | (highs[i] >> (quarter * 2) & 3) << 4) - 32);
  }
}

void decode_iq4_xs(Bytes block, float* out) {
  const float scale = half_at(block);
  const int high = block[2] | block[3] << 8;
  for (int part = 0; part < 8; ++part) {
    const int low = block[4 + part / 2] >> (part % 2 * 4) & 15;
    const float own = scale * number((low | (high >> (2 * part) & 3) << 4) - 32);
    const Bytes codes = block + 8 + part * 16;
    for (int i = 0; i < 16; ++i) {
      out[part * 32 + i] = own * kIq4Numbers[codes[i] & 15];
      out[part * 32 + 16 + i] = own * kIq4Numbers[codes[i] >> 4];
    }
  }
}

/// One of five numbers of three values that a byte holds as a fraction: what its product with 3^place has above 256.
float third(uint8_t byte, int place) {
  constexpr std::array<int, 5> kPowers{1, 3, 9, 27, 81};
  const int fraction = byte * kPowers[static_cast<size_t>(place)] & 255;
  return number((fraction * 3 >> 8) - 1);
}

void decode_tq1_0(Bytes block, float* out) {
  const float scale = half_at(block + 52);
  for (int place = 0; place < 5; ++place) {
    for (int i = 0; i < 32; ++i) out[place * 32 + i] = scale * third(block[i], place);
    for (int i = 0; i < 16; ++i) out[160 + place * 16 + i] = scale * third(block[32 + i], place);
  }
  for (int place = 0; place < 4; ++place)
    for (int i = 0; i < 4; ++i) out[240 + place * 4 + i] = scale * third(block[48 + i], place);
}

void decode_tq2_0(Bytes block, float* out) {
  const float scale = half_at(block + 64);
  for (int part = 0; part < 8; ++part)
    for (int i = 0; i < 32; ++i)
      out[part * 32 + i] = scale * number((block[part / 4 * 32 + i] >> (part % 4 * 2) & 3) - 1);
}

struct BlockDecoder {
  std::string_view type;
  void (*decode)(Bytes block, float* out);
};
constexpr BlockDecoder kBlockDecoders[] = {
    {"Q4_0", decode_q4_0},   {"Q4_1", decode_q4_1},   {"Q5_0", decode_q5_0},     {"Q5_1", decode_q5_1},
    {"Q8_0", decode_q8_0},   {"Q2_K", decode_q2_k},   {"Q3_K", decode_q3_k},     {"Q4_K", decode_q4_k},
    {"Q5_K", decode_q5_k},   {"Q6_K", decode_q6_k},   {"IQ4_NL", decode_iq4_nl}, {"IQ4_XS", decode_iq4_xs},
    {"TQ1_0", decode_tq1_0}, {"TQ2_0", decode_tq2_0}, {"MXFP4", decode_mxfp4},
};

const BlockDecoder& decoder_of(const GgufType& type) {
  for (const BlockDecoder& decoder : kBlockDecoders)
    if (decoder.type == type.name) return decoder;
  throw std::logic_error(cat("blocks of ", type.name, " have no decoder"));
}

/// Both on the host.
void decode_on_host(uint32_t type_number, const Tensor& codes, const Tensor& out) {
  const GgufType& type = *find_gguf_type(type_number);
  const BlockDecoder& decoder = decoder_of(type);
  const int64_t blocks = out.numel() / type.block_numbers;
  const Tensor bytes = codes.contiguous();
  const Bytes from = bytes.const_data_ptr<uint8_t>();
  float* const to = out.mutable_data_ptr<float>();
  constexpr int64_t kNumbersOfThread = 1 << 15;
  at::parallel_for(0, blocks, std::max<int64_t>(1, kNumbersOfThread / type.block_numbers),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t block = begin; block < end; ++block)
                       decoder.decode(from + block * type.block_bytes, to + block * type.block_numbers);
                   });
}

}  // namespace

void decode_blocks(uint32_t type, const Tensor& codes, const Tensor& out) {
  if (out.device() == Placement::host()) return decode_on_host(type, codes, out);
  const Tensor decoded = torch::empty(out.sizes(), torch::kFloat);
  decode_on_host(type, codes.to(Placement::host()), decoded);
  out.copy_(decoded);
}

double largest_of_blocks(uint32_t type, const Tensor& codes, int64_t columns) {
  const Tensor bytes = codes.to(Placement::host());
  const int64_t step = rows_at_a_time(columns, Placement::host());
  const Tensor place = torch::empty({std::min(step, bytes.size(0)), columns}, torch::kFloat);
  double largest = 0;
  for (int64_t begin = 0; begin < bytes.size(0); begin += step) {
    const Tensor some = place.narrow(0, 0, std::min(step, bytes.size(0) - begin));
    decode_on_host(type, bytes.narrow(0, begin, some.size(0)), some);
    const double own = some.abs().max().item<double>();
    if (!std::isfinite(own)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, own);
  }
  return largest;
}

}  // namespace lancet
