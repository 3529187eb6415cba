// What the safetensors reader and writer must agree on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "lancet/core/dtype.h"

namespace lancet {

inline constexpr uint64_t kLengthBytes = 8;
inline constexpr uint64_t kLongestHeader = 100'000'000;  // the reference's MAX_HEADER_SIZE
inline constexpr std::string_view kMetadataKey = "__metadata__";

/// dtype x shape; nullopt when a size is negative or the product does not fit in int64_t. Sizes of 0 count as 1 while
/// multiplying, so that strides of an empty tensor cannot overflow either.
inline std::optional<uint64_t> stored_bytes(DType dtype, std::span<const int64_t> shape) {
  int64_t bytes = bytes_per_element(dtype);
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes)) return std::nullopt;
    empty = empty || size == 0;
  }
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

}  // namespace lancet
