// Encoders of blocks of GGUF files, one for each type that lancet writes.
#pragma once

#include <c10/util/Half.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace lancet {

struct BlockEncoder {
  std::string_view type;                                 ///< GgufType::name
  void (*encode)(const float* numbers, uint8_t* block);  ///< writes one block of finite numbers
};

/// Types of 32 numbers a block. Defined in encode_short.cpp.
std::span<const BlockEncoder> short_block_encoders();
/// Types of 256 numbers a block. Defined in encode_long.cpp.
std::span<const BlockEncoder> long_block_encoders();

inline void put_half(uint8_t* to, float number) {
  const uint16_t bits = c10::Half(number).x;
  std::memcpy(to, &bits, sizeof(bits));
}

}  // namespace lancet
