#include "decoders.h"

#include <cmath>

namespace lancet {
namespace {

void decode_q4_0(BlockBytes block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * number((block[2 + i] & 15) - 8);
    out[16 + i] = scale * number((block[2 + i] >> 4) - 8);
  }
}

void decode_q4_1(BlockBytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * number(block[4 + i] & 15) + least;
    out[16 + i] = scale * number(block[4 + i] >> 4) + least;
  }
}

void decode_q5_0(BlockBytes block, float* out) {
  const float scale = half_at(block);
  const uint32_t high = word32_at(block + 2);
  for (int i = 0; i < 16; ++i) {
    const auto low_bit = static_cast<int>(high >> i & 1U) << 4, high_bit = static_cast<int>(high >> (i + 16) & 1U) << 4;
    out[i] = scale * number(((block[6 + i] & 15) | low_bit) - 16);
    out[16 + i] = scale * number(((block[6 + i] >> 4) | high_bit) - 16);
  }
}

void decode_q5_1(BlockBytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  const uint32_t high = word32_at(block + 4);
  for (int i = 0; i < 16; ++i) {
    const auto low_bit = static_cast<int>(high >> i & 1U) << 4, high_bit = static_cast<int>(high >> (i + 16) & 1U) << 4;
    out[i] = scale * number((block[8 + i] & 15) | low_bit) + least;
    out[16 + i] = scale * number((block[8 + i] >> 4) | high_bit) + least;
  }
}

void decode_q8_0(BlockBytes block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = scale * number(signed_byte(block[2 + i]));
}

void decode_iq4_nl(BlockBytes block, float* out) {
  const float scale = half_at(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * kIq4Numbers[block[2 + i] & 15];
    out[16 + i] = scale * kIq4Numbers[block[2 + i] >> 4];
  }
}

void decode_mxfp4(BlockBytes block, float* out) {
  const float scale = half_of_e8m0(block[0]);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * kDoubleE2m1Numbers[block[1 + i] & 15];
    out[16 + i] = scale * kDoubleE2m1Numbers[block[1 + i] >> 4];
  }
}

/// E4M3 without a sign, halved. What E4M3 has for no number is 0, as in ggml.
float half_of_e4m3(uint8_t byte) {
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  if (byte == 0x7F) return 0;
  return exponent == 0 ? std::ldexp(number(mantissa), -10) : std::ldexp(number(8 + mantissa), exponent - 11);
}

void decode_nvfp4(BlockBytes block, float* out) {
  for (int part = 0; part < 4; ++part) {
    const float scale = half_of_e4m3(block[part]);
    const BlockBytes codes = block + 4 + part * 8;
    for (int i = 0; i < 8; ++i) {
      out[part * 16 + i] = scale * kDoubleE2m1Numbers[codes[i] & 15];
      out[part * 16 + 8 + i] = scale * kDoubleE2m1Numbers[codes[i] >> 4];
    }
  }
}

constexpr BlockDecoder kShortDecoders[] = {
    {"Q4_0", decode_q4_0}, {"Q4_1", decode_q4_1},     {"Q5_0", decode_q5_0},   {"Q5_1", decode_q5_1},
    {"Q8_0", decode_q8_0}, {"IQ4_NL", decode_iq4_nl}, {"MXFP4", decode_mxfp4}, {"NVFP4", decode_nvfp4},
};

}  // namespace

std::span<const BlockDecoder> short_block_decoders() { return kShortDecoders; }

}  // namespace lancet
