#include "lancet/io/file_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <vector>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// What is copied before the disk is told to begin: it writes while the next piece is copied.
constexpr uint64_t kPieceBytes = uint64_t{64} << 20;
constexpr size_t kBufferBytes = size_t{1} << 20;

/// Whether the kernel cannot copy between these two files; plain reading and writing may still work.
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

/// Returns the bytes that the kernel copied: fewer than asked for where it cannot.
uint64_t append_in_kernel(const FileRange& from, FileHandle& to) {
  uint64_t done = 0;
  while (done < from.length) {
    auto offset = static_cast<off64_t>(from.offset + done);
    const ssize_t copied = ::copy_file_range(from.descriptor, &offset, to.descriptor(), nullptr, from.length - done, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && !is_unsupported(errno)) throw CheckpointError(file_problem(to.path(), "cannot write", errno));
    if (copied <= 0) break;  // 0: some file systems report an end that is none
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
