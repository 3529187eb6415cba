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

/// Returns "path: cannot write: No space left on device; free some space there or choose another place".
std::string file_problem(const std::filesystem::path& path, std::string_view action, int error_number);

/// Returns false only if nothing of that name exists. Returns true for a symbolic link to a missing file and for an
/// entry that may not be accessed; opening it then reports the problem.
bool has_entry(const std::filesystem::path& path);

/// Renames a file or folder to a name that must be free, in one step where the file system can. Returns 0 or the error
/// number: EEXIST if the name is taken.
int rename_new(const std::filesystem::path& from, const std::filesystem::path& to);

/// Returns whether renameat2(2) failed because the file system has no flags such as RENAME_NOREPLACE.
bool lacks_rename_flags(int error_number);

/// Calls openat(2) with O_CLOEXEC and repeats it if a signal interrupts it. Returns a descriptor, or -1 with errno.
/// `folder` is a folder's descriptor or AT_FDCWD.
int open_descriptor(int folder, const std::filesystem::path& path, int flags);

class FileHandle {
 public:
  /// Opens a regular file. Symbolic links are followed.
  static FileHandle open_regular(const std::filesystem::path& path);
  static FileHandle open_folder(const std::filesystem::path& path);
  /// Creates a file for writing only. The file must not exist.
  static FileHandle create(const std::filesystem::path& path);
  /// Takes ownership of an open descriptor.
  FileHandle(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&&) = delete;

  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }
  /// Returns whether path() still names the open file, not another file or a link to it.
  bool has_its_name() const;
  void write(std::span<const std::byte> bytes);
  void write_at(std::span<const std::byte> bytes, uint64_t offset);
  /// Asks the disk to start writing. Does not wait, and guarantees nothing.
  void begin_sync();
  void sync();
  /// Closes the file and checks the result: some file systems report a full disk only here.
  void close();
  /// Returns the descriptor and gives up its ownership.
  int release();

 private:
  int descriptor_;
  std::filesystem::path path_;
};

/// Makes the renames in `folder` durable.
void sync_folder(const std::filesystem::path& folder);

/// A hidden file beside `target`. commit() renames it to `target`; without a commit it is removed. The first one that a
/// process makes in a folder removes those that ended processes left there.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  FileHandle& file() { return file_; }
  /// Returns the hidden name that the file has until commit().
  const std::filesystem::path& path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  FileHandle file_;
  FileHandle lock_;  // of the same open file: shows other processes, also after close(), that the file is in use
  bool committed_ = false;
};

// Identifies a file without reading it, to check whether a path still names the same, unchanged file.

struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t size_bytes = 0;
  int64_t written_ns = 0;  ///< mtime
  int64_t changed_ns = 0;  ///< ctime: it cannot be set back

  bool operator==(const FileIdentity&) const = default;
};

/// Throws: CheckpointError if there is no file.
FileIdentity identify_file(const std::filesystem::path& path);

// Copies bytes from file to file, in the kernel if possible.

/// A range of `length` bytes of an open file, from `offset` on.
struct FileRange {
  int descriptor;
  const std::filesystem::path& path;
  uint64_t offset;
  uint64_t length;
};

/// Appends the range to `to` and starts to write it to the disk, so that a later sync has little left to do. Copies in
/// the kernel, or through a small buffer if the kernel cannot copy between the two file systems. Throws:
/// CheckpointError, also if the file ends before the range does.
void append_range(const FileRange& from, FileHandle& to);

/// Makes the empty `to` share the blocks of the whole file until one of the two is changed (btrfs, XFS), which takes no
/// time and no space. Returns false if the file system does not support it.
bool clone_file(int from_descriptor, FileHandle& to);

}  // namespace lancet
