// The head of a new GGUF file: metadata and tensors' places. Version 3, little endian.
// Source of the format: ggml-org/ggml, docs/gguf.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lancet/gguf/gguf_types.h"

namespace lancet {

using GgufValue = std::variant<std::string, uint32_t, float, bool, std::vector<std::string>, std::vector<float>,
                               std::vector<int32_t>>;
using GgufEntry = std::pair<std::string, GgufValue>;

/// A tensor of a new file.
struct GgufNewTensor {
  std::string name;
  const GgufType* type = nullptr;
  std::vector<int64_t> shape;  ///< numbers of the last dimension lie beside each other
  uint64_t begin = 0;          ///< offset from the first tensor's first byte; new_gguf_head() sets it

  uint64_t bytes() const;
  /// Number of zero bytes after the tensor's: the next tensor, or the file's end, is at a multiple of 32.
  uint64_t padding() const;
};

/// Names of tensors that llama.cpp takes have at most so many bytes.
inline constexpr size_t kLongestGgufTensorName = 63;

/// Returns the file's bytes before the first tensor: metadata and tensors in the order given, each tensor at a multiple
/// of 32. Throws: std::logic_error for a name of more than 63 bytes or that comes twice, and for a tensor without
/// dimensions or with more than 4.
std::string new_gguf_head(std::span<const GgufEntry> metadata, std::span<GgufNewTensor> tensors);

}  // namespace lancet
