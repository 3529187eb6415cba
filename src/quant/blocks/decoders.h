// Decoders of blocks of GGUF files, one for each type, and what several of them read. Each product and each sum is
// rounded as the gguf package rounds it, so the sources are compiled without contraction (CMakeLists.txt).
// Sources: ggml-org/ggml, src/ggml-common.h (blocks); gguf 0.19, quants.py (the order of the products and sums).
#pragma once

#include <c10/util/Half.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace lancet {

using BlockBytes = const uint8_t*;

struct BlockDecoder {
  std::string_view type;                         ///< GgufType::name
  void (*decode)(BlockBytes block, float* out);  ///< writes the numbers of one block
};

/// Types of 32 or 64 numbers a block. Defined in decode_short.cpp.
std::span<const BlockDecoder> short_block_decoders();
/// Types of 256 numbers a block whose codes are numbers. Defined in decode_long.cpp.
std::span<const BlockDecoder> long_block_decoders();
/// Types of 256 numbers a block whose codes are points of a codebook. Defined in decode_codebook.cpp.
std::span<const BlockDecoder> codebook_decoders();

/// Numbers of the codes of IQ4_NL and IQ4_XS.
inline constexpr std::array<float, 16> kIq4Numbers{-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};
/// Twice the numbers of E2M1, by code. The scales of MXFP4 and NVFP4 are half of what their bytes say.
inline constexpr std::array<float, 16> kDoubleE2m1Numbers{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

inline float number(int value) { return static_cast<float>(value); }
inline int signed_byte(uint8_t byte) { return static_cast<int8_t>(byte); }

inline uint16_t word16_at(BlockBytes at) {
  uint16_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

inline uint32_t word32_at(BlockBytes at) {
  uint32_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

inline float half_of(uint16_t bits) { return static_cast<float>(c10::Half(bits, c10::Half::from_bits())); }
inline float half_at(BlockBytes at) { return half_of(word16_at(at)); }

/// 2^(exponent - 128), which is half of what E8M0 says.
inline float half_of_e8m0(uint8_t exponent) {
  const uint32_t bits = exponent < 2 ? uint32_t{0x00200000} << exponent : (exponent - 1U) << 23;
  return std::bit_cast<float>(bits);
}

/// Scale and least number of a part of Q4_K and Q5_K, 6 bits each.
struct SixBitScale {
  int scale, least;
};
/// `scales`: the 12 bytes of 8 parts.
inline SixBitScale six_bit_scale(BlockBytes scales, int part) {
  if (part < 4) return {scales[part] & 63, scales[4 + part] & 63};
  return {(scales[4 + part] & 15) | (scales[part - 4] >> 2 & 0x30),
          (scales[4 + part] >> 4) | (scales[part] >> 2 & 0x30)};
}

}  // namespace lancet
