#include "decoders.h"

namespace lancet {
namespace {

void decode_q2_k(BlockBytes block, float* out) {
  const BlockBytes scales = block, codes = block + 16;
  const float scale = half_at(block + 80), least = half_at(block + 82);
  for (int part = 0; part < 16; ++part) {
    const float own = scale * number(scales[part] & 15), low = least * number(scales[part] >> 4);
    const BlockBytes from = codes + part / 8 * 32 + part % 2 * 16;
    const int shift = part % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) out[part * 16 + i] = own * number(from[i] >> shift & 3) - low;
  }
}

void decode_q3_k(BlockBytes block, float* out) {
  const BlockBytes mask = block, codes = block + 32, scales = block + 96;
  const float scale = half_at(block + 108);
  for (int part = 0; part < 16; ++part) {
    const int low = part < 8 ? scales[part] & 15 : scales[part - 8] >> 4;
    const int high = scales[8 + part % 4] >> (part / 4 * 2) & 3;
    const float own = scale * number((low | high << 4) - 32);
    const BlockBytes from = codes + part / 8 * 32 + part % 2 * 16, masked = mask + part % 2 * 16;
    const int shift = part % 8 / 2 * 2, bit = part / 2;
    for (int i = 0; i < 16; ++i)
      out[part * 16 + i] = own * number((from[i] >> shift & 3) - ((masked[i] >> bit & 1) != 0 ? 0 : 4));
  }
}

void decode_q4_k(BlockBytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  const BlockBytes scales = block + 4, codes = block + 16;
  for (int part = 0; part < 8; ++part) {
    const SixBitScale own = six_bit_scale(scales, part);
    const float by = scale * number(own.scale), low = least * number(own.least);
    const BlockBytes from = codes + part / 2 * 32;
    const int shift = part % 2 * 4;
    for (int i = 0; i < 32; ++i) out[part * 32 + i] = by * number(from[i] >> shift & 15) - low;
  }
}

void decode_q5_k(BlockBytes block, float* out) {
  const float scale = half_at(block), least = half_at(block + 2);
  const BlockBytes scales = block + 4, high = block + 16, codes = block + 48;
  for (int part = 0; part < 8; ++part) {
    const SixBitScale own = six_bit_scale(scales, part);
    const float by = scale * number(own.scale), low = least * number(own.least);
    const BlockBytes from = codes + part / 2 * 32;
    const int shift = part % 2 * 4;
    for (int i = 0; i < 32; ++i)
      out[part * 32 + i] = by * number((from[i] >> shift & 15) | (high[i] >> part & 1) << 4) - low;
  }
}

void decode_q6_k(BlockBytes block, float* out) {
  const BlockBytes low = block, high = block + 128, scales = block + 192;
  const float scale = half_at(block + 208);
  for (int part = 0; part < 16; ++part) {
    const int half = part / 8, quarter = part % 8 / 2, from = part % 2 * 16;
    const float own = scale * number(signed_byte(scales[part]));
    const BlockBytes lows = low + half * 64 + quarter % 2 * 32 + from, highs = high + half * 32 + from;
    const int shift = quarter / 2 * 4;
    for (int i = 0; i < 16; ++i)
      out[part * 16 + i] = own * number(((lows[i] >> shift & 15) | (highs[i] >> (quarter * 2) & 3) << 4) - 32);
  }
}

void decode_iq4_xs(BlockBytes block, float* out) {
  const float scale = half_at(block);
  const int high = block[2] | block[3] << 8;
  for (int part = 0; part < 8; ++part) {
    const int low = block[4 + part / 2] >> (part % 2 * 4) & 15;
    const float own = scale * number((low | (high >> (2 * part) & 3) << 4) - 32);
    const BlockBytes codes = block + 8 + part * 16;
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

void decode_tq1_0(BlockBytes block, float* out) {
  const float scale = half_at(block + 52);
  for (int place = 0; place < 5; ++place) {
    for (int i = 0; i < 32; ++i) out[place * 32 + i] = scale * third(block[i], place);
    for (int i = 0; i < 16; ++i) out[160 + place * 16 + i] = scale * third(block[32 + i], place);
  }
  for (int place = 0; place < 4; ++place)
    for (int i = 0; i < 4; ++i) out[240 + place * 4 + i] = scale * third(block[48 + i], place);
}

void decode_tq2_0(BlockBytes block, float* out) {
  const float scale = half_at(block + 64);
  for (int part = 0; part < 8; ++part)
    for (int i = 0; i < 32; ++i)
      out[part * 32 + i] = scale * number((block[part / 4 * 32 + i] >> (part % 4 * 2) & 3) - 1);
}

constexpr BlockDecoder kLongDecoders[] = {
    {"Q2_K", decode_q2_k}, {"Q3_K", decode_q3_k},     {"Q4_K", decode_q4_k},   {"Q5_K", decode_q5_k},
    {"Q6_K", decode_q6_k}, {"IQ4_XS", decode_iq4_xs}, {"TQ1_0", decode_tq1_0}, {"TQ2_0", decode_tq2_0},
};

}  // namespace

std::span<const BlockDecoder> long_block_decoders() { return kLongDecoders; }

}  // namespace lancet
