// Shards are copied in the kernel (on btrfs and XFS without moving a byte) and the replaced tensors' bytes written
// over: their dtype and shape are the base's, so the header stays true.
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <map>

#include "file_handle.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/checkpoint.h"
#include "model_files.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

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

void copy_through_memory(const FileHandle& from, FileHandle& to) {
  std::vector<std::byte> buffer(size_t{1} << 20);
  for (;;) {
    const ssize_t got = ::read(from.descriptor(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw CheckpointError(file_problem(from.path(), "cannot read", errno));
    if (got == 0) return;
    to.write(std::span(buffer).first(static_cast<size_t>(got)));
  }
}

/// Whether the kernel cannot copy between these two files; plain reading and writing may still work.
bool is_unsupported(int error_number) {
  return error_number == EXDEV || error_number == EINVAL || error_number == ENOSYS || error_number == EOPNOTSUPP ||
         error_number == EPERM;
}

void copy_bytes(const FileHandle& from, FileHandle& to) {
  for (;;) {
    // Advances both file positions, so that the plain copy goes on wherever this one ends.
    const ssize_t copied = ::copy_file_range(from.descriptor(), nullptr, to.descriptor(), nullptr, size_t{1} << 30, 0);
    if (copied > 0 || (copied < 0 && errno == EINTR)) continue;
    if (copied < 0 && !is_unsupported(errno)) throw CheckpointError(file_problem(to.path(), "cannot write", errno));
    // Some file systems report an end that is none; for a true end the plain copy finds nothing left.
    copy_through_memory(from, to);
    break;
  }
  if (from.size_bytes() != to.size_bytes())
    throw CheckpointError(cat(from.path().string(), ": expected ", from.size_bytes(), " bytes, copied ",
                              to.size_bytes(), "; the file changed meanwhile: start again"));
}

/// A regular file of its own, also where the base has a symbolic link.
FileHandle copy_into(const fs::path& source, const fs::path& target) {
  const FileHandle from = FileHandle::open_regular(source);
  FileHandle to = FileHandle::create(target);
  copy_bytes(from, to);
  return to;
}

void finish(FileHandle file) {
  file.sync();
  file.close();
}

/// The header changes, so the whole file is written anew, tensors in the same order.
void rewrite_shard(const SafetensorsReader& shard, const Replaced& replaced, const fs::path& target) {
  std::vector<TensorSource> tensors;
  for (const TensorInfo& info : shard.tensors()) {
    const auto found = replaced.find(info.name);
    tensors.push_back({info.name, info.dtype, info.shape,
                       found == replaced.end() ? shard.view(info.name).bytes : found->second->bytes});
  }
  Metadata metadata = shard.metadata();
  metadata["format"] = "pt";
  write_safetensors(target, tensors, metadata);
}

bool same_place(const TensorInfo& a, const TensorInfo& b) {
  return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.begin == b.begin && a.end == b.end;
}

void patch_shard(const SafetensorsReader& shard, const Replaced& replaced, const fs::path& target) {
  FileHandle file = copy_into(shard.path(), target);
  // The copy was made by path: another file may have taken the place of the mapped one since it was opened.
  const SafetensorsReader copy = SafetensorsReader::open(target);
  if (!std::ranges::equal(copy.tensors(), shard.tensors(), same_place))
    throw CheckpointError(cat(shard.path().string(),
                              ": expected the file as it was opened, got another one; "
                              "it was replaced meanwhile: start again"));
  for (const TensorInfo& info : shard.tensors())
    if (const auto found = replaced.find(info.name); found != replaced.end())
      file.write_at(found->second->bytes, info.begin);
  finish(std::move(file));
}

}  // namespace

void export_checkpoint(const Checkpoint& base, std::span<const TensorSource> replaced, const fs::path& target) {
  const Replaced by_name = check_replaced(base, replaced);
  std::error_code error;
  if (!fs::is_directory(target, error) || !fs::is_empty(target, error))
    throw CheckpointError(cat(target.string(), ": expected an existing, empty folder, got ",
                              fs::is_directory(target, error) ? "one with files in it" : "none",
                              "; make an empty folder"));

  for (const SafetensorsReader& shard : base.shards()) {
    const fs::path file = target / shard.path().filename();
    // transformers refuses a file whose metadata does not name a format.
    if (shard.metadata().contains("format"))
      patch_shard(shard, by_name, file);
    else
      rewrite_shard(shard, by_name, file);
  }
  const bool indexed = base.shards().size() != 1 || base.shards().front().path().filename() != kWeightsFile;
  if (indexed) finish(copy_into(base.folder() / kIndexFile, target / kIndexFile));
  for (const char* const name : kSidecarFiles)
    if (has_entry(base.folder() / name)) finish(copy_into(base.folder() / name, target / name));
  sync_folder(target);
}

}  // namespace lancet
