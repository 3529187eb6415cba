// Types of numbers in GGUF files: how many numbers a block has, and how many bytes. Numbers of a row lie in blocks one
// after the other; no block has numbers of two rows.
// Source: ggml-org/ggml, include/ggml.h (enum ggml_type) and src/ggml-common.h; gguf 0.19 (constants.py).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lancet/core/dtype.h"

namespace lancet {

struct GgufType {
  uint32_t number;             ///< number that files have for it
  std::string_view name;       ///< "Q4_K"
  int64_t block_numbers;       ///< numbers of a block
  int64_t block_bytes;         ///< bytes of a block
  std::optional<DType> dtype;  ///< type of plain numbers; nullopt: blocks

  bool is_plain() const { return dtype.has_value(); }
  /// Bytes of a tensor of this shape, whose rows are whole blocks.
  uint64_t bytes_of(std::span<const int64_t> shape) const;
};

/// All types that can be read.
std::span<const GgufType> gguf_types();
/// nullptr: there is none of that number.
const GgufType* find_gguf_type(uint32_t number);
/// nullptr: there is none of that name.
const GgufType* find_gguf_type(std::string_view name);

/// Name of a type that cannot be read, or its number.
std::string gguf_type_text(uint32_t number);

/// "F32, F16, Q8_0, ...".
std::string gguf_type_names();

}  // namespace lancet
