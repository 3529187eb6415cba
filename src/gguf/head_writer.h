// Adds numbers and texts to the head of a GGUF file, as the format has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lancet {

template <typename Number>
void put_number(std::string& head, Number number) {
  head.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// Adds the text's length, of 64 bits, and its bytes.
inline void put_text(std::string& head, std::string_view text) {
  put_number(head, static_cast<uint64_t>(text.size()));
  head += text;
}

/// Adds a tensor's dimensions, the last one first.
template <typename Shape>
void put_shape(std::string& head, const Shape& shape) {
  put_number(head, static_cast<uint32_t>(shape.size()));
  for (size_t i = shape.size(); i-- > 0;) put_number(head, static_cast<uint64_t>(shape[i]));
}

/// Returns the next multiple of `alignment`.
inline uint64_t aligned_to(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace lancet
