#include "lancet/io/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>

#include "file_handle.h"
#include "lancet/core/strings.h"

namespace lancet {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  FileHandle file = FileHandle::open_regular(path);
  const uint64_t size_bytes = file.size_bytes();
  const std::shared_ptr<MappedFile> mapped(new MappedFile(path, file.release()));
  if (size_bytes == 0) return mapped;  // mmap refuses empty ranges
  void* const begin = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, mapped->descriptor_, 0);
  if (begin == MAP_FAILED) throw CheckpointError(file_problem(path, "cannot map into memory", errno));
  mapped->bytes_ = {static_cast<const std::byte*>(begin), size_bytes};
  return mapped;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  ::close(descriptor_);
}

void MappedFile::read(uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw CheckpointError(file_problem(path_, "cannot read", errno));
    if (got == 0)
      throw CheckpointError(cat(path_.string(), ": expected ", bytes_.size(), " bytes, got an end at byte ", offset,
                                "; the file was cut since it was opened: start again"));
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

}  // namespace lancet
