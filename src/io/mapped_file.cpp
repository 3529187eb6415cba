#include "lancet/io/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"

namespace lancet {
namespace {

int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const std::shared_ptr<MappedFile> mapped(new MappedFile(path, FileHandle::open_regular(path).release()));
  mapped->stamp_ = mapped->stamp_now();
  const auto size_bytes = static_cast<uint64_t>(mapped->stamp_.size_bytes);
  if (size_bytes == 0) return mapped;  // mmap refuses empty ranges
  void* const begin = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, mapped->descriptor_, 0);
  if (begin == MAP_FAILED && errno == ENOMEM)
    throw PlacementError(cat(path.string(), ": the system has no address space for ", bytes_text(size_bytes),
                             " more; raise the limit of virtual memory (ulimit -v) or of mappings (vm.max_map_count)"));
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

std::string MappedFile::text() const {
  std::string text(bytes_.size(), '\0');
  read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void MappedFile::add_to(ContentHash& hash, uint64_t offset, uint64_t length) const {
  hash.add(length, [&](uint64_t begin, std::span<std::byte> piece) { read(offset + begin, piece); });
}

FileStamp MappedFile::stamp_now() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw CheckpointError(file_problem(path_, "cannot stat", errno));
  return {status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

}  // namespace lancet
