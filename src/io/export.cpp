// Shards are written by several threads. What lies between the replaced tensors goes from file to file in the kernel
// (on btrfs and XFS the whole shard, without moving a byte), from the file that was opened, whatever has its name by
// now; the replaced tensors' bytes go where the base's are, since dtype and shape are the base's.
#include <algorithm>
#include <map>
#include <thread>

#include "file_copy.h"
#include "file_handle.h"
#include "lancet/core/error.h"
#include "lancet/core/parallel.h"
#include "lancet/core/strings.h"
#include "lancet/io/checkpoint.h"
#include "lancet/io/files.h"
#include "model_files.h"
#include "tensors/safetensors_head.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// More do not copy faster: the disk or the memory is the limit.
constexpr size_t kMostThreads = 8;

using Replaced = std::map<std::string_view, const TensorSource*>;

Replaced check_replaced(const Checkpoint& base, std::span<const TensorSource> replaced) {
  Replaced by_name;
  for (const TensorSource& tensor : replaced) {
    const TensorInfo& info = base.info(tensor.name);
    const std::string where = cat(base.folder().string(), ": tensor '", tensor.name, "': ");
    if (tensor.dtype != info.dtype || tensor.shape != info.shape)
      throw CheckpointError(cat(where, "expected ", dtype_name(info.dtype), " ", shape_text(info.shape), ", got ",
                                dtype_name(tensor.dtype), " ", shape_text(tensor.shape),
                                "; convert it to the base's form"));
    if (tensor.bytes.size() != info.end - info.begin)
      throw CheckpointError(cat(where, "expected ", info.end - info.begin, " bytes, got ", tensor.bytes.size(),
                                "; make the data agree with the shape"));
    if (!by_name.emplace(tensor.name, &tensor).second)
      throw CheckpointError(where + "expected one replacement, got two; give each tensor once");
  }
  return by_name;
}

void finish(FileHandle file) {
  file.sync();
  file.close();
}

/// A regular file of its own, also where the base has a symbolic link.
void copy_whole_file(const MappedFile& from, const fs::path& target) {
  FileHandle to = FileHandle::create(target);
  append_range({from.descriptor(), from.path(), 0, from.bytes().size()}, to);
  finish(std::move(to));
}

/// For a header with `format`, which transformers refuses a file without.
std::string head_with_format(const SafetensorsReader& shard, const fs::path& target) {
  std::vector<TensorSource> tensors;
  for (const TensorInfo& info : shard.tensors())
    tensors.push_back({info.name, info.dtype, info.shape, shard.view(info.name).bytes});
  Metadata metadata = shard.metadata();
  metadata["format"] = "pt";
  return safetensors_head(target, tensors, metadata);
}

/// Header and tensors from the first byte to the last; untouched neighbours in one copy.
void write_in_order(const SafetensorsReader& shard, const Replaced& replaced, FileHandle& to) {
  const auto copy = [&](uint64_t begin, uint64_t end) {
    append_range({shard.file().descriptor(), shard.path(), begin, end - begin}, to);
  };
  uint64_t copied = 0;  // where the next copy begins
  if (!shard.metadata().contains("format")) {
    const std::string head = head_with_format(shard, to.path());
    to.write(std::as_bytes(std::span(head)));
    copied = shard.tensors().empty() ? shard.file().bytes().size() : shard.tensors().front().begin;
  }
  for (const TensorInfo& info : shard.tensors()) {
    const auto found = replaced.find(info.name);
    if (found == replaced.end()) continue;
    copy(copied, info.begin);
    to.write(found->second->bytes);
    copied = info.end;
  }
  copy(copied, shard.file().bytes().size());
}

void write_over(const SafetensorsReader& shard, const Replaced& replaced, FileHandle& to) {
  for (const TensorInfo& info : shard.tensors())
    if (const auto found = replaced.find(info.name); found != replaced.end())
      to.write_at(found->second->bytes, info.begin);
}

/// Throws unless the file holds the shard's tensors: names, types, shapes, order. What was copied could be another
/// header than the one that was read.
void check_holds_tensors(const fs::path& file, const SafetensorsReader& shard) {
  const auto same = [](const TensorInfo& a, const TensorInfo& b) {
    return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape;
  };
  if (!std::ranges::equal(SafetensorsReader::open(file).tensors(), shard.tensors(), same))
    throw CheckpointError(cat(shard.path().string(),
                              ": expected the file as it was opened, got another header; it was written to "
                              "meanwhile: start again"));
}

void export_shard(const SafetensorsReader& shard, const Replaced& replaced, const fs::path& target) {
  FileHandle file = FileHandle::create(target);
  if (shard.metadata().contains("format") && clone_file(shard.file().descriptor(), file))
    write_over(shard, replaced, file);
  else
    write_in_order(shard, replaced, file);
  check_holds_tensors(target, shard);
  finish(std::move(file));
}

}  // namespace

void export_checkpoint(const Checkpoint& base, std::span<const TensorSource> replaced, const fs::path& target) {
  const Replaced by_name = check_replaced(base, replaced);
  std::error_code error;
  if (!fs::is_directory(target, error) || !folder_names(target).empty())
    throw CheckpointError(cat(target.string(), ": expected an existing, empty folder, got ",
                              fs::is_directory(target, error) ? "one with files in it" : "none",
                              "; make an empty folder"));

  base.check_unchanged();
  const size_t n_threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  for_each_in_parallel(base.shards().size(), n_threads, [&](size_t i) {
    const SafetensorsReader& shard = base.shards()[i];
    export_shard(shard, by_name, target / shard.path().filename());
  });
  for (const auto& file : base.side_files()) copy_whole_file(*file, target / file->path().filename());
  base.check_unchanged();  // the copies too are of what was opened
  sync_folder(target);
}

}  // namespace lancet
