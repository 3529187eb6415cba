#include "lancet/io/mapped_file.h"

#include <sys/mman.h>
#include <cerrno>

#include "file_handle.h"

namespace lancet {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // The mapping outlives the descriptor: a checkpoint of many shards holds no descriptors open.
  const FileHandle file = FileHandle::open_regular(path);
  const uint64_t size_bytes = file.size_bytes();
  const std::shared_ptr<MappedFile> mapped(new MappedFile({}));
  if (size_bytes == 0) return mapped;  // mmap refuses empty ranges
  void* const begin = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (begin == MAP_FAILED) throw CheckpointError(file_problem(path, "cannot map into memory", errno));
  mapped->bytes_ = {static_cast<const std::byte*>(begin), size_bytes};
  return mapped;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace lancet
