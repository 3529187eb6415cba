// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace lancet {

class MappedFile {
 public:
  /// Throws: CheckpointError when the file is absent, not a regular file, or cannot be mapped. An empty file has an
  /// empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace lancet
