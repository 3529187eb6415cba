// A file mapped read-only into memory, and readable without the mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "lancet/core/hash.h"

namespace lancet {

/// What shows that somebody wrote to a file.
struct FileStamp {
  int64_t size_bytes = 0;
  int64_t written_ns = 0;  ///< mtime: writing sets it, and whoever likes to
  int64_t changed_ns = 0;  ///< ctime: writing sets it, and so do links, renames and permissions; nobody can set it back
  bool operator==(const FileStamp&) const = default;
};

class MappedFile {
 public:
  /// Throws: CheckpointError when the file is absent, not a regular file, or cannot be mapped. An empty file has an
  /// empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The file's bytes, in place. Touching what somebody has cut off the file since is a fatal signal: for files that
  /// others write to there is read().
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Open for reading as long as this lives, whatever file `path` names by then.
  int descriptor() const { return descriptor_; }

  /// Copies the bytes from `offset` on into `to`, past the mapping: no page of it is touched, and a file that was cut
  /// since it was opened is an error instead of a fatal signal. From any thread. Throws: CheckpointError.
  void read(uint64_t offset, std::span<std::byte> to) const;
  /// Returns all of the file, as read() has it.
  std::string text() const;
  /// Adds `length` bytes from `offset` on, as read() has them: the hash is that of the same bytes in memory.
  void add_to(ContentHash& hash, uint64_t offset, uint64_t length) const;

  /// The file's stamp when it was opened.
  const FileStamp& stamp() const { return stamp_; }
  /// Returns the stamp that the opened file has now. Throws: CheckpointError.
  FileStamp stamp_now() const;

 private:
  MappedFile(std::filesystem::path path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  int descriptor_;  // owned
  std::span<const std::byte> bytes_;
  FileStamp stamp_;
};

}  // namespace lancet
