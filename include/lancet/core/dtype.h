// Element types of stored tensors, by their safetensors names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lancet {

enum class DType : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64
};

int64_t bytes_per_element(DType dtype);

/// Returns the name as in a safetensors header: "BF16", "F8_E4M3".
std::string_view dtype_name(DType dtype);

std::optional<DType> parse_dtype(std::string_view safetensors_name);

}  // namespace lancet
