#include "lancet/io/file_handle.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "leftovers.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// One write(2) writes at most 2^31 - 4096 bytes. Smaller pieces also let signals be handled sooner.
constexpr size_t kLargestWrite = size_t{1} << 30;

std::string_view remedy(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "free some space there or choose another place";
    case EFBIG:
      return "raise the file size limit (ulimit -f) or choose another file system";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check the permissions or choose another place";
    case ENOENT:
      return "check the path; a symbolic link may point to a file that is gone";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case ENOMEM:
      return "use a smaller editor.values.batch, or end what else runs there";
    default:
      return "check the path and the disk";
  }
}

FileHandle open_or_throw(const fs::path& path, int flags, std::string_view action) {
  const int descriptor = open_descriptor(AT_FDCWD, path, flags);
  if (descriptor < 0) throw CheckpointError(file_problem(path, action, errno));
  return {descriptor, path};
}

/// Creates a file with a hidden name that is unused in the folder. The name does not contain the target's name, which
/// may already have the largest length. The handle's messages name `target`.
FileHandle create_beside(const fs::path& target, fs::path& created) {
  // one at a time: a file of our own that is not locked yet would look like a leftover
  static std::mutex mutex;
  static uint64_t counter = 0;
  static std::set<fs::path> cleaned;
  const std::lock_guard guard(mutex);
  if (cleaned.insert(target.parent_path()).second) remove_stale_temporaries(target.parent_path());
  for (;;) {
    created = target.parent_path() / temporary_name(counter++);
    // a killed process with our process id may have left a file with this name; the next number is then free
    const int descriptor = open_descriptor(AT_FDCWD, created, O_WRONLY | O_CREAT | O_EXCL);
    if (descriptor >= 0) {
      // in folders where files cannot be locked, leftovers stay
      static_cast<void>(::flock(descriptor, LOCK_EX | LOCK_NB));
      return {descriptor, target};
    }
    if (errno != EEXIST) throw CheckpointError(file_problem(target, "cannot create", errno));
  }
}

}  // namespace

std::string file_problem(const fs::path& path, std::string_view action, int error_number) {
  return cat(path.string(), ": ", action, ": ", std::generic_category().message(error_number), "; ",
             remedy(error_number));
}

bool has_entry(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

int rename_new(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (!lacks_rename_flags(errno)) return errno;
  if (has_entry(to)) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

bool lacks_rename_flags(int error_number) {
  return error_number == EINVAL || error_number == ENOSYS || error_number == EOPNOTSUPP;
}

int open_descriptor(int folder, const fs::path& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::openat(folder, path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

FileHandle FileHandle::open_regular(const fs::path& path) {
  // without O_NONBLOCK, opening a named pipe would wait for a writer, before it can be refused
  FileHandle file = open_or_throw(path, O_RDONLY | O_NONBLOCK, "cannot open");
  struct stat status {};
  if (::fstat(file.descriptor_, &status) != 0) throw CheckpointError(file_problem(path, "cannot stat", errno));
  if (!S_ISREG(status.st_mode)) {
    throw CheckpointError(cat(path.string(), ": expected a regular file, got ",
                              S_ISDIR(status.st_mode) ? "a folder" : "a pipe or a device", "; check the path"));
  }
  return file;
}

FileHandle FileHandle::open_folder(const fs::path& path) {
  return open_or_throw(path, O_RDONLY | O_DIRECTORY, "cannot open the folder");
}

FileHandle FileHandle::create(const fs::path& path) {
  return open_or_throw(path, O_WRONLY | O_CREAT | O_EXCL, "cannot create");
}

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileHandle::FileHandle(FileHandle&& other) noexcept : descriptor_(other.release()), path_(std::move(other.path_)) {}

bool FileHandle::has_its_name() const {
  struct stat open {
  }, named{};
  return ::fstat(descriptor_, &open) == 0 && ::lstat(path_.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

void FileHandle::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw CheckpointError(file_problem(path_, "cannot write", written < 0 ? errno : EIO));
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void FileHandle::write_at(std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kLargestWrite), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw CheckpointError(file_problem(path_, "cannot write", written < 0 ? errno : EIO));
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void FileHandle::begin_sync() { static_cast<void>(::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE)); }

void FileHandle::sync() {
  if (::fsync(descriptor_) != 0) throw CheckpointError(file_problem(path_, "cannot write to the disk", errno));
}

void FileHandle::close() {
  // Linux closes the descriptor whatever close() returns; EINTR is not a failure
  if (::close(release()) != 0 && errno != EINTR) throw CheckpointError(file_problem(path_, "cannot close", errno));
}

int FileHandle::release() { return std::exchange(descriptor_, -1); }

void sync_folder(const fs::path& folder) {
  const FileHandle handle = FileHandle::open_folder(folder.empty() ? fs::path(".") : folder);
  // EINVAL: this file system cannot sync a folder
  if (::fsync(handle.descriptor()) != 0 && errno != EINVAL)
    throw CheckpointError(file_problem(folder, "cannot write to the disk", errno));
}

TemporaryFile::TemporaryFile(const fs::path& target)
    : target_(target),
      file_(create_beside(target, temporary_)),
      lock_(::fcntl(file_.descriptor(), F_DUPFD_CLOEXEC, 0), target) {}

TemporaryFile::~TemporaryFile() {
  if (!committed_) ::unlink(temporary_.c_str());
}

void TemporaryFile::commit() {
  file_.sync();
  file_.close();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    throw CheckpointError(file_problem(target_, "cannot put the file in place", errno));
  committed_ = true;
  sync_folder(target_.parent_path());
}

FileIdentity identify_file(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw CheckpointError(file_problem(path, "cannot stat", errno));
  const auto nanoseconds = [](const timespec& time) { return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec; };
  return {status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

namespace {

/// After this many bytes the disk is told to begin, so that it writes while the next piece is copied.
constexpr uint64_t kPieceBytes = uint64_t{64} << 20;
constexpr size_t kBufferBytes = size_t{1} << 20;

/// Whether the kernel cannot copy between these two files. Plain reading and writing may still work.
bool is_unsupported(int error_number) {
  return error_number == EXDEV || error_number == EINVAL || error_number == ENOSYS || error_number == EOPNOTSUPP ||
         error_number == EPERM;
}

void append_through_memory(const FileRange& from, FileHandle& to) {
  std::vector<std::byte> buffer(std::min<uint64_t>(kBufferBytes, from.length));
  for (uint64_t done = 0; done < from.length;) {
    const size_t wanted = std::min<uint64_t>(buffer.size(), from.length - done);
    const ssize_t got = ::pread(from.descriptor, buffer.data(), wanted, static_cast<off_t>(from.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw CheckpointError(file_problem(from.path, "cannot read", errno));
    if (got == 0)
      throw CheckpointError(cat(from.path.string(), ": expected data up to byte ", from.offset + from.length,
                                ", got an end at ", from.offset + done, "; the file changed meanwhile: start again"));
    to.write(std::span(buffer).first(static_cast<size_t>(got)));
    done += static_cast<uint64_t>(got);
  }
}

/// Returns the number of bytes that the kernel copied. It is smaller than requested if the kernel cannot copy.
uint64_t append_in_kernel(const FileRange& from, FileHandle& to) {
  uint64_t done = 0;
  while (done < from.length) {
    auto offset = static_cast<off64_t>(from.offset + done);
    const ssize_t copied = ::copy_file_range(from.descriptor, &offset, to.descriptor(), nullptr, from.length - done, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && !is_unsupported(errno)) throw CheckpointError(file_problem(to.path(), "cannot write", errno));
    if (copied <= 0) break;  // 0: some file systems report an end that is not real
    done += static_cast<uint64_t>(copied);
  }
  return done;
}

}  // namespace

void append_range(const FileRange& from, FileHandle& to) {
  for (uint64_t done = 0; done < from.length;) {
    const uint64_t length = std::min(kPieceBytes, from.length - done);
    FileRange piece{from.descriptor, from.path, from.offset + done, length};
    const uint64_t copied = append_in_kernel(piece, to);
    piece.offset += copied;
    piece.length -= copied;
    append_through_memory(piece, to);
    to.begin_sync();
    count_progress();
    done += length;
  }
}

bool clone_file(int from_descriptor, FileHandle& to) { return ::ioctl(to.descriptor(), FICLONE, from_descriptor) == 0; }

}  // namespace lancet
