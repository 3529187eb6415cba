// Blocks of 256 numbers: the search is that of long_block.h, and here are the places of bits, as in decode_long.cpp.
#include "encoders.h"
#include "long_block.h"

namespace lancet {
namespace {

constexpr LongBlockShape kQ2K{16, 0, 3, 0, 15, 15};
constexpr LongBlockShape kQ3K{16, -4, 3, -32, 31, 0};
constexpr LongBlockShape kQ4K{8, 0, 15, 0, 63, 63};
constexpr LongBlockShape kQ5K{8, 0, 31, 0, 63, 63};
constexpr LongBlockShape kQ6K{16, -32, 31, -128, 127, 0};

uint8_t byte_of(int bits) { return static_cast<uint8_t>(bits); }
void add_bits(uint8_t& byte, int bits) { byte = byte_of(byte | bits); }

/// Codes of 2 bits in 64 bytes: a byte has the numbers i, i + 32, i + 64 and i + 96 of 128.
void put_two_bits(const LongBlock& found, int above, uint8_t* to) {
  for (size_t i = 0; i < kLongBlock; ++i)
    add_bits(to[i / 128 * 32 + i % 32], ((found.codes[i] + above) & 3) << (i % 128 / 32 * 2));
}

/// The 12 bytes of 8 scales and 8 least numbers of 6 bits.
void put_six_bits(const LongBlock& found, uint8_t* to) {
  for (size_t part = 0; part < 4; ++part) {
    const int scale = found.factors[part], later_scale = found.factors[part + 4];
    const int least = found.leasts[part], later_least = found.leasts[part + 4];
    to[part] = byte_of(scale | later_scale >> 4 << 6);
    to[4 + part] = byte_of(least | later_least >> 4 << 6);
    to[8 + part] = byte_of((later_scale & 15) | (later_least & 15) << 4);
  }
}

/// Codes of 4 bits in 128 bytes: a byte has the numbers i and i + 32 of 64.
void put_four_bits(const LongBlock& found, uint8_t* to) {
  for (size_t i = 0; i < kLongBlock; ++i)
    add_bits(to[i / 64 * 32 + i % 32], (found.codes[i] & 15) << (i % 64 / 32 * 4));
}

void encode_q2_k(const float* numbers, uint8_t* block) {
  const LongBlock found = search_long_block(numbers, kQ2K);
  std::memset(block, 0, 84);
  for (size_t part = 0; part < 16; ++part) block[part] = byte_of(found.factors[part] | found.leasts[part] << 4);
  put_two_bits(found, 0, block + 16);
  put_half(block + 80, found.scale);
  put_half(block + 82, found.least);
}

void encode_q3_k(const float* numbers, uint8_t* block) {
  const LongBlock found = search_long_block(numbers, kQ3K);
  std::memset(block, 0, 110);
  for (size_t i = 0; i < kLongBlock; ++i)
    if (found.codes[i] >= 0) add_bits(block[i % 32], 1 << (i / 32));
  put_two_bits(found, 4, block + 32);
  for (size_t part = 0; part < 16; ++part) {
    const int factor = found.factors[part] + 32;
    add_bits(block[96 + part % 8], (factor & 15) << (part / 8 * 4));
    add_bits(block[104 + part % 4], factor >> 4 << (part / 4 * 2));
  }
  put_half(block + 108, found.scale);
}

void encode_q4_k(const float* numbers, uint8_t* block) {
  const LongBlock found = search_long_block(numbers, kQ4K);
  std::memset(block, 0, 144);
  put_half(block, found.scale);
  put_half(block + 2, found.least);
  put_six_bits(found, block + 4);
  put_four_bits(found, block + 16);
}

void encode_q5_k(const float* numbers, uint8_t* block) {
  const LongBlock found = search_long_block(numbers, kQ5K);
  std::memset(block, 0, 176);
  put_half(block, found.scale);
  put_half(block + 2, found.least);
  put_six_bits(found, block + 4);
  for (size_t i = 0; i < kLongBlock; ++i) add_bits(block[16 + i % 32], found.codes[i] >> 4 << (i / 32));
  put_four_bits(found, block + 48);
}

void encode_q6_k(const float* numbers, uint8_t* block) {
  const LongBlock found = search_long_block(numbers, kQ6K);
  std::memset(block, 0, 210);
  for (size_t i = 0; i < kLongBlock; ++i) {
    const int code = found.codes[i] + 32;
    const size_t half = i / 128, quarter = i % 128 / 32;
    add_bits(block[half * 64 + quarter % 2 * 32 + i % 32], (code & 15) << (quarter / 2 * 4));
    add_bits(block[128 + half * 32 + i % 32], code >> 4 << (quarter * 2));
  }
  for (size_t part = 0; part < 16; ++part) block[192 + part] = byte_of(found.factors[part]);
  put_half(block + 208, found.scale);
}

constexpr BlockEncoder kLongEncoders[] = {
    {"Q2_K", encode_q2_k}, {"Q3_K", encode_q3_k}, {"Q4_K", encode_q4_k}, {"Q5_K", encode_q5_k}, {"Q6_K", encode_q6_k}};

}  // namespace

std::span<const BlockEncoder> long_block_encoders() { return kLongEncoders; }

}  // namespace lancet
