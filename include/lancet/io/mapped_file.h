// A file mapped read-only into memory, and readable without the mapping.
#pragma once

#include <cstddef>
#include <cstdint>
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

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Open for reading as long as this lives, whatever file `path` names by then.
  int descriptor() const { return descriptor_; }

  /// Copies the bytes from `offset` on into `to`, past the mapping: no page of it is touched, and a file that was cut
  /// since it was opened is an error instead of a fatal signal. From any thread. Throws: CheckpointError.
  void read(uint64_t offset, std::span<std::byte> to) const;

 private:
  MappedFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_;  // owned
  std::span<const std::byte> bytes_;
};

}  // namespace lancet
