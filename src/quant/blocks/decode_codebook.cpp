#include <bit>

#include "codebooks.h"
#include "decoders.h"

namespace lancet {
namespace {

/// 7 signs, and the eighth that makes the number of minus signs even.
int eight_signs(uint32_t signs) {
  const uint32_t seven = signs & 127;
  return static_cast<int>(seven | (static_cast<uint32_t>(std::popcount(seven)) & 1U) << 7);
}

/// A minus sign where a bit is set, the first number's lowest.
template <size_t kSize>
void put_signed(const CodebookPoint<kSize>& point, int signs, float scale, float* out) {
  for (size_t i = 0; i < kSize; ++i) out[i] = scale * number(point[i]) * ((signs >> i & 1) != 0 ? -1.0F : 1.0F);
}

// ---- IQ2: 8 numbers a code

/// Of a part of IQ2, whose scale is a multiple of a quarter.
float iq2_scale(float scale, int multiple) { return scale * (0.5F + number(multiple)) * 0.25F; }

void decode_iq2_xxs(BlockBytes block, float* out) {
  const float scale = half_at(block);
  for (int part = 0; part < 8; ++part) {
    const BlockBytes codes = block + 2 + part * 8;
    const uint32_t signs = word32_at(codes + 4);
    const float own = iq2_scale(scale, static_cast<int>(signs >> 28));
    for (int i = 0; i < 4; ++i)
      put_signed(kIq2XxsPoints[codes[i]], eight_signs(signs >> (7 * i)), own, out + part * 32 + i * 8);
  }
}

void decode_iq2_xs(BlockBytes block, float* out) {
  const float scale = half_at(block);
  const BlockBytes codes = block + 2, scales = block + 66;
  for (int i = 0; i < 32; ++i) {
    const uint32_t code = word16_at(codes + 2 * i);
    const float own = iq2_scale(scale, scales[i / 4] >> (i / 2 % 2 * 4) & 15);
    put_signed(kIq2XsPoints[code & 511], eight_signs(code >> 9), own, out + i * 8);
  }
}

void decode_iq2_s(BlockBytes block, float* out) {
  const float scale = half_at(block);
  const BlockBytes codes = block + 2, signs = block + 34, high = block + 66, scales = block + 74;
  for (int i = 0; i < 32; ++i) {
    const int code = codes[i] | (high[i / 4] >> (i % 4 * 2) & 3) << 8;
    const float own = iq2_scale(scale, scales[i / 4] >> (i / 2 % 2 * 4) & 15);
    put_signed(kIq2SPoints[static_cast<size_t>(code)], signs[i], own, out + i * 8);
  }
}

// ---- IQ3: 4 numbers a code

void decode_iq3_xxs(BlockBytes block, float* out) {
  const float scale = half_at(block);
  const BlockBytes codes = block + 2, words = block + 66;
  for (int part = 0; part < 8; ++part) {
    const uint32_t signs = word32_at(words + 4 * part);
    const float own = scale * (0.5F + number(static_cast<int>(signs >> 28))) * 0.5F;
    for (int i = 0; i < 8; ++i)
      put_signed(kIq3XxsPoints[codes[part * 8 + i]], eight_signs(signs >> (i / 2 * 7)) >> (i % 2 * 4), own,
                 out + part * 32 + i * 4);
  }
}

void decode_iq3_s(BlockBytes block, float* out) {
  const float scale = half_at(block);
  const BlockBytes codes = block + 2, high = block + 66, signs = block + 74, scales = block + 106;
  for (int i = 0; i < 64; ++i) {
    const int code = codes[i] | (high[i / 8] >> (i % 8) & 1) << 8;
    const float own = scale * number(1 + 2 * (scales[i / 16] >> (i / 8 % 2 * 4) & 15));
    put_signed(kIq3SPoints[static_cast<size_t>(code)], signs[i / 2] >> (i % 2 * 4), own, out + i * 4);
  }
}

// ---- IQ1: 8 numbers a code, and a shift of all of them

void put_shifted(int code, bool is_down, float scale, float* out) {
  const CodebookPoint<8>& point = kIq1Points[static_cast<size_t>(code)];
  for (size_t i = 0; i < point.size(); ++i) out[i] = scale * (number(point[i]) + (is_down ? -0.125F : 0.125F));
}

void decode_iq1_s(BlockBytes block, float* out) {
  const float scale = half_at(block);
  const BlockBytes codes = block + 2, words = block + 34;
  for (int part = 0; part < 8; ++part) {
    const int high = word16_at(words + 2 * part);
    const float own = scale * number(2 * (high >> 12 & 7) + 1);
    for (int i = 0; i < 4; ++i)
      put_shifted(codes[part * 4 + i] | (high >> (3 * i) & 7) << 8, (high & 0x8000) != 0, own, out + part * 32 + i * 8);
  }
}

/// The scale of the whole block is the highest 4 bits of 4 words.
void decode_iq1_m(BlockBytes block, float* out) {
  const BlockBytes codes = block, high = block + 32, scales = block + 48;
  int bits = 0;
  for (int i = 0; i < 4; ++i) bits |= word16_at(scales + 2 * i) >> 12 << (4 * i);
  const float scale = half_of(static_cast<uint16_t>(bits));
  for (int i = 0; i < 32; ++i) {
    const int own_high = high[i / 2] >> (i % 2 * 4);
    const int multiple = word16_at(scales + i / 8 * 2) >> (i / 2 % 4 * 3) & 7;
    put_shifted(codes[i] | (own_high & 7) << 8, (own_high & 8) != 0, scale * number(2 * multiple + 1), out + i * 8);
  }
}

constexpr BlockDecoder kCodebookDecoders[] = {
    {"IQ2_XXS", decode_iq2_xxs}, {"IQ2_XS", decode_iq2_xs}, {"IQ2_S", decode_iq2_s}, {"IQ3_XXS", decode_iq3_xxs},
    {"IQ3_S", decode_iq3_s},     {"IQ1_S", decode_iq1_s},   {"IQ1_M", decode_iq1_m},
};

}  // namespace

std::span<const BlockDecoder> codebook_decoders() { return kCodebookDecoders; }

}  // namespace lancet
