// Files that lancet writes for itself and reads back: safetensors whose metadata ("facts" here) says what they are and
// what they belong to, and carries a hash of all that is in them. What is damaged, or is another's, is found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "lancet/checkpoint/safetensors.h"

namespace lancet {

inline constexpr const char* kFormatFact = "format";
inline constexpr const char* kContentHashFact = "content_hash";

/// What kind of file one is, as its fact "format" says it; raised when the meaning of a file changes.
struct SealedFormat {
  std::string_view name;
};

/// The hash of a file that write_sealed() would write.
std::string sealed_hash(const SealedFormat& format, std::span<const TensorSource> tensors, Metadata facts);

/// Writes a file like write_safetensors(), with format and hash among the facts. Returns the hash.
std::string write_sealed(const std::filesystem::path& path, const SealedFormat& format,
                         std::span<const TensorSource> tensors, Metadata facts);

/// A file with a hash of its bytes. Its errors are CheckpointErrors "PATH: what is wrong"; what to do about it, callers
/// know.
class SealedFile {
 public:
  /// Reads the header alone. Throws when it is damaged, of another format, or has no hash.
  static SealedFile open(const std::filesystem::path& path, const SealedFormat& format);

  const std::filesystem::path& path() const { return reader_.path(); }
  /// Tensors in the order of their bytes.
  const std::vector<TensorInfo>& tensors() const { return reader_.tensors(); }
  const Metadata& facts() const { return reader_.metadata(); }
  /// Throws when there is none.
  const std::string& fact(const std::string& name) const;
  const std::string& content_hash() const { return content_hash_; }

  /// Some of a tensor's bytes. `offset`: of the first in the tensor, a multiple of every element's size.
  struct Piece {
    size_t tensor = 0;
    uint64_t offset = 0;
    std::span<const std::byte> bytes;
  };
  /// Reads all of the file once, past its mapping, and gives it to `take`, by several threads in any order. Throws when
  /// it has not the hash: what was given is not to be used then.
  void read(const std::function<void(const Piece&)>& take) const;
  /// Checks the hash of a file that is used later, by reading all of it.
  void check() const {
    read([](const Piece&) {});
  }

 private:
  explicit SealedFile(SafetensorsReader reader) : reader_(std::move(reader)) {}

  SafetensorsReader reader_;
  std::string content_hash_;
};

/// Hashes a whole file as SealedFile hashes a tensor: by pieces, several threads, past the mapping.
std::string hash_of_bytes(const MappedFile& file);

}  // namespace lancet
