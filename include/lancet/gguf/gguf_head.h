// The head of a GGUF file that is another one with some tensors in other types: its metadata and tensors' places.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "lancet/gguf/gguf_file.h"

namespace lancet {

/// A tensor as it is written.
struct GgufWritten {
  const GgufTensor* base = nullptr;  ///< the tensor in the base, which has its name and shape
  const GgufType* type = nullptr;
  uint64_t bytes = 0;
  uint64_t begin = 0;  ///< offset from the first tensor's on; gguf_head() sets it
};

/// Metadata that every file has which lancet wrote from another one.
inline constexpr const char* kGgufVersionKey = "lancet.version";

using GgufAddition = std::pair<std::string, std::variant<std::string, uint32_t>>;

/// Magic to the last byte before the first tensor: the base's version and metadata, byte for byte, then `additions`
/// (the base's of these names go, and what says that it was split), and the tensors, one after the other, aligned as in
/// the base. Throws: CheckpointError when the file cannot be read.
std::string gguf_head(const GgufFile& base, std::span<GgufWritten> tensors, std::span<const GgufAddition> additions);

}  // namespace lancet
