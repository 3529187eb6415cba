// The safetensors format: 8 bytes of header length (little endian), a JSON header, then the tensors' bytes without
// gaps. The reader maps the file and validates everything before anything is used; the writer is atomic. Source of the
// format: huggingface/safetensors, README "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/core/dtype.h"
#include "lancet/io/files.h"

namespace lancet {

/// Place of a tensor. `begin`, `end`: byte offsets in the file (not in its data section).
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

/// Bytes of a stored tensor, row-major, in place in the mapped file; `owner` keeps the mapping alive.
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> owner;

  /// Offset of the first byte in the file.
  uint64_t begin() const { return static_cast<uint64_t>(bytes.data() - owner->bytes().data()); }
  /// Copies the tensor's bytes from `offset` on into `to`, as MappedFile::read. Throws: CheckpointError.
  void read(uint64_t offset, std::span<std::byte> to) const { owner->read(begin() + offset, to); }
  /// Adds the tensor's bytes, as MappedFile::add_to. Throws: CheckpointError.
  void add_to(ContentHash& hash) const { owner->add_to(hash, begin(), bytes.size()); }
};

using Metadata = std::map<std::string, std::string>;

/// Tensors of one file by name, whatever the file's format.
class TensorFile {
 public:
  /// `tensors`: in the order of their bytes; each name comes once.
  TensorFile(std::shared_ptr<const MappedFile> file, std::vector<TensorInfo> tensors, Metadata metadata);

  const std::filesystem::path& path() const { return file_->path(); }
  const MappedFile& file() const { return *file_; }
  /// Tensors in the order of their bytes in the file.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Throws: CheckpointError naming the file when `name` is not in it.
  const TensorInfo& info(std::string_view name) const;
  TensorView view(std::string_view name) const;

 private:
  const TensorInfo* find(std::string_view name) const;

  std::shared_ptr<const MappedFile> file_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
  Metadata metadata_;
};

class SafetensorsReader : public TensorFile {
 public:
  /// Throws: CheckpointError when the file is not a valid safetensors file: header length, JSON, duplicate names,
  /// unknown dtypes, negative or overflowing shapes, offsets that overlap, leave gaps, lie outside or disagree with
  /// dtype x shape.
  static SafetensorsReader open(const std::filesystem::path& path);

 private:
  using TensorFile::TensorFile;
};

/// A tensor to write; the bytes (row-major, numel * bytes_per_element) are borrowed.
struct TensorSource {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes tensors in the order given; data section aligned to 8 bytes (header padded with spaces), as the reference
/// writer does. The file appears complete or not at all: temporary file beside it, fsync, rename. Throws:
/// CheckpointError when the disk refuses (nothing is left behind), a name comes twice, or bytes disagree with the
/// shape.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorSource> tensors,
                       const Metadata& metadata);

}  // namespace lancet
