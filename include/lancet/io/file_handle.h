// Owned file descriptors, and files that appear complete or not at all.
// Every failed system call becomes a CheckpointError that names the path, the cause and what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lancet/core/error.h"

namespace lancet {

/// "path: cannot write: No space left on device; free some space there or choose another place".
std::string file_problem(const std::filesystem::path& path, std::string_view action, int error_number);

/// False only where nothing of that name is: true for a symbolic link whose file is gone and for what may not be looked
/// at. Opening it then tells what is wrong.
bool has_entry(const std::filesystem::path& path);

/// openat(2) with O_CLOEXEC, again where a signal interrupted it: a descriptor, or -1 and errno. `folder` is one's
/// descriptor or AT_FDCWD.
int open_descriptor(int folder, const std::filesystem::path& path, int flags);

class FileHandle {
 public:
  /// A regular file (symbolic links are followed).
  static FileHandle open_regular(const std::filesystem::path& path);
  static FileHandle open_folder(const std::filesystem::path& path);
  /// Write-only; the file must not exist.
  static FileHandle create(const std::filesystem::path& path);
  /// Takes over an open descriptor.
  FileHandle(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&&) = delete;

  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }
  /// Whether path() still names the file that is open, and not another one or a link to it.
  bool has_its_name() const;
  void write(std::span<const std::byte> bytes);
  void write_at(std::span<const std::byte> bytes, uint64_t offset);
  /// Asks the disk to begin with what has been written; waits for nothing and promises nothing.
  void begin_sync();
  void sync();
  /// Checked: some file systems report a full disk only here.
  void close();
  /// Gives the descriptor away.
  int release();

 private:
  int descriptor_;
  std::filesystem::path path_;
};

/// Makes the renames in `folder` durable.
void sync_folder(const std::filesystem::path& folder);

/// A hidden file beside `target` that takes its place at commit(); removed otherwise. The first one that a process
/// makes in a folder removes those that dead processes left there.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  FileHandle& file() { return file_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  FileHandle file_;
  FileHandle lock_;  // of the same open file: tells other processes, also after close(), that it is not a leftover
  bool committed_ = false;
};

// Whether a path still names the file that it named, as it was then: without reading it.

struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t size_bytes = 0;
  int64_t written_ns = 0;  ///< mtime
  int64_t changed_ns = 0;  ///< ctime: nobody can set it back

  bool operator==(const FileIdentity&) const = default;
};

/// Throws: CheckpointError where no file is there.
FileIdentity identify_file(const std::filesystem::path& path);

// Bytes from file to file, by the kernel where it can.

/// `length` bytes of an open file at `offset`.
struct FileRange {
  int descriptor;
  const std::filesystem::path& path;
  uint64_t offset;
  uint64_t length;
};

/// Copies to the current end of `to`, and begins to write it out to the disk, so that a later sync finds little left.
/// In the kernel; through a small buffer where the two files lie on file systems between which it cannot.
/// Throws: CheckpointError, also when the file ends before the range does.
void append_range(const FileRange& from, FileHandle& to);

/// Makes the empty `to` share the whole file's blocks until one of the two changes (btrfs, XFS): costs no time and no
/// space. False where the file system cannot.
bool clone_file(int from_descriptor, FileHandle& to);

}  // namespace lancet
