// Shards are written by several threads. What lies between the changed tensors goes from file to file in the kernel
// (on btrfs and XFS the whole shard, without moving a byte), from the file that was opened, whatever has its name by
// now. In shards that keep their layout the replaced tensors' bytes go where the base's are.
#include "lancet/checkpoint/checkpoint_export.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/parallel.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "lancet/io/model_file_names.h"
#include "safetensors_format.h"
#include "safetensors_head.h"

namespace lancet {
namespace {

// Which tensors each shard of an export holds, and where their bytes come from.

/// A tensor of a shard: the base's bytes, or the source's.
struct ExportedTensor {
  const TensorInfo* kept = nullptr;      ///< the base's tensor; null: it has none
  const TensorSource* source = nullptr;  ///< null: the base's bytes

  std::string_view name() const { return kept != nullptr ? kept->name : source->name; }
  DType dtype() const { return kept != nullptr ? kept->dtype : source->dtype; }
  const std::vector<int64_t>& shape() const { return kept != nullptr ? kept->shape : source->shape; }
  uint64_t size_bytes() const { return kept != nullptr ? kept->end - kept->begin : source->bytes.size(); }
};

struct ExportedShard {
  std::vector<ExportedTensor> tensors = {};  ///< tensors in the order of their bytes
  bool keeps_layout = true;                  ///< every tensor is where it is in the base
};

/// Views of a base and of changes, which outlive it.
struct ExportPlan {
  std::vector<ExportedShard> shards = {};  ///< one for each of the base's
  std::set<std::string_view> removed = {};
  std::map<std::string_view, const TensorExchange*> exchange_at = {};  ///< exchange that takes a removed tensor's place

  uint64_t tensor_bytes() const;
};

using Sources = std::map<std::string_view, const TensorSource*>;

std::string tensor_place(const Checkpoint& base, std::string_view name) {
  return cat(base.folder().string(), ": tensor '", printable(name), "': ");
}

Sources check_replaced(const Checkpoint& base, std::span<const TensorSource> replaced) {
  Sources by_name;
  for (const TensorSource& tensor : replaced) {
    const TensorInfo& info = base.info(tensor.name);
    const std::string where = tensor_place(base, tensor.name);
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

/// Checks what is exchanged, and returns it by removed tensor.
std::map<std::string_view, const TensorExchange*> check_removed(const Checkpoint& base, const Sources& replaced,
                                                                std::span<const TensorExchange> exchanged) {
  std::map<std::string_view, const TensorExchange*> by_name;
  for (const TensorExchange& exchange : exchanged) {
    if (exchange.removed.empty() || exchange.added.empty())
      throw CheckpointError(cat(base.folder().string(), ": expected tensors to take out and tensors to put in their ",
                                "place, got ", exchange.removed.size(), " and ", exchange.added.size(),
                                "; name at least one of each"));
    for (const std::string& name : exchange.removed) {
      base.info(name);
      if (!by_name.emplace(name, &exchange).second || replaced.contains(name))
        throw CheckpointError(tensor_place(base, name) +
                              "expected to be taken out once and not replaced, got more than one change of it; give "
                              "each tensor once");
    }
  }
  return by_name;
}

void check_added(const Checkpoint& base, const std::map<std::string_view, const TensorExchange*>& removed,
                 std::span<const TensorExchange> exchanged) {
  std::set<std::string_view> names;
  for (const TensorExchange& exchange : exchanged)
    for (const TensorSource& tensor : exchange.added) {
      const std::string where = tensor_place(base, tensor.name);
      if (!names.insert(tensor.name).second || (base.contains(tensor.name) && !removed.contains(tensor.name)))
        throw CheckpointError(where +
                              "expected a name that no other tensor has, got one that is taken; take that "
                              "tensor out, or choose another name");
      const auto expected = stored_bytes(tensor.dtype, tensor.shape);
      if (!expected || *expected != tensor.bytes.size())
        throw CheckpointError(cat(where, "expected the bytes of ", dtype_name(tensor.dtype), " ",
                                  shape_text(tensor.shape), ", got ", tensor.bytes.size(),
                                  " bytes; make the data agree with the shape"));
    }
}

bool is_aligned(const std::vector<ExportedTensor>& tensors) {
  uint64_t offset = 0;
  for (const ExportedTensor& tensor : tensors) {
    if (offset % static_cast<uint64_t>(bytes_per_element(tensor.dtype())) != 0) return false;
    offset += tensor.size_bytes();
  }
  return true;
}

uint64_t ExportPlan::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const ExportedShard& shard : shards)
    for (const ExportedTensor& tensor : shard.tensors) bytes += tensor.size_bytes();
  return bytes;
}

/// Throws: CheckpointError when the changes do not fit the base, or each other.
ExportPlan plan_export(const Checkpoint& base, const CheckpointChanges& changes) {
  const Sources replaced = check_replaced(base, changes.replaced);
  const auto removed = check_removed(base, replaced, changes.exchanged);
  check_added(base, removed, changes.exchanged);
  ExportPlan plan;
  std::set<const TensorExchange*> placed;
  for (const TensorFile& shard : base.shards()) {
    ExportedShard& out = plan.shards.emplace_back();
    for (const TensorInfo& info : shard.tensors()) {
      const auto exchange = removed.find(info.name);
      if (exchange == removed.end()) {
        const auto source = replaced.find(info.name);
        out.tensors.push_back({&info, source == replaced.end() ? nullptr : source->second});
        continue;
      }
      out.keeps_layout = false;
      plan.removed.insert(info.name);
      if (!placed.insert(exchange->second).second) continue;
      plan.exchange_at.emplace(info.name, exchange->second);
      for (const TensorSource& tensor : exchange->second->added) out.tensors.push_back({nullptr, &tensor});
    }
    if (!out.keeps_layout && !is_aligned(out.tensors))
      std::ranges::stable_sort(out.tensors, std::ranges::greater(),
                               [](const ExportedTensor& tensor) { return bytes_per_element(tensor.dtype()); });
  }
  return plan;
}

namespace fs = std::filesystem;

/// More do not copy faster: the disk or the memory is the limit.
constexpr size_t kMostWriters = 8;

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

void write_whole_file(std::string_view text, const fs::path& target) {
  FileHandle to = FileHandle::create(target);
  to.write(std::as_bytes(std::span(text)));
  finish(std::move(to));
}

/// Returns the shard's new header, with `format`, which transformers refuses a file without.
std::string new_head(const TensorFile& shard, const ExportedShard& exported, const fs::path& target) {
  std::vector<TensorSource> tensors;
  for (const ExportedTensor& tensor : exported.tensors)
    tensors.push_back(tensor.source != nullptr ? *tensor.source
                                               : TensorSource{tensor.kept->name, tensor.dtype(), tensor.shape(),
                                                              shard.view(tensor.kept->name).bytes});
  Metadata metadata = shard.metadata();
  metadata["format"] = "pt";
  return safetensors_head(target, tensors, metadata);
}

/// Header and tensors from the first byte to the last; untouched neighbours in one copy.
void write_in_order(const TensorFile& shard, const ExportedShard& exported, FileHandle& to) {
  uint64_t begin = 0, end = 0;  // of the base's bytes that come next
  const auto copy = [&] {
    if (begin < end) append_range({shard.file().descriptor(), shard.path(), begin, end - begin}, to);
  };
  if (exported.keeps_layout && shard.metadata().contains("format")) {
    end = shard.tensors().empty() ? shard.file().bytes().size() : shard.tensors().front().begin;
  } else {
    const std::string head = new_head(shard, exported, to.path());
    to.write(std::as_bytes(std::span(head)));
  }
  for (const ExportedTensor& tensor : exported.tensors) {
    if (tensor.source != nullptr || tensor.kept->begin != end) {
      copy();
      begin = end = tensor.kept != nullptr ? tensor.kept->begin : 0;
    }
    if (tensor.source == nullptr)
      end = tensor.kept->end;
    else
      to.write(tensor.source->bytes);
  }
  copy();
}

void write_over(const ExportedShard& exported, FileHandle& to) {
  for (const ExportedTensor& tensor : exported.tensors)
    if (tensor.source != nullptr) to.write_at(tensor.source->bytes, tensor.kept->begin);
}

/// Throws unless the file holds the tensors: names, types, shapes, order. What was copied could be another header than
/// the one that was read.
void check_holds_tensors(const fs::path& file, const ExportedShard& exported, const TensorFile& shard) {
  const auto same = [](const TensorInfo& a, const ExportedTensor& b) {
    return a.name == b.name() && a.dtype == b.dtype() && a.shape == b.shape();
  };
  if (!std::ranges::equal(SafetensorsReader::open(file).tensors(), exported.tensors, same))
    throw CheckpointError(cat(shard.path().string(),
                              ": expected the file as it was opened, got another header; it was written to "
                              "meanwhile: start again"));
}

void export_shard(const TensorFile& shard, const ExportedShard& exported, const fs::path& target) {
  FileHandle file = FileHandle::create(target);
  if (exported.keeps_layout && shard.metadata().contains("format") && clone_file(shard.file().descriptor(), file))
    write_over(exported, file);
  else
    write_in_order(shard, exported, file);
  check_holds_tensors(target, exported, shard);
  finish(std::move(file));
}

/// Keys are sorted. Throws: nlohmann::json::exception, JsonProblem where it is not the index that was opened.
std::string changed_index(const MappedFile& file, const ExportPlan& plan) {
  nlohmann::json index = parse_strict_json(file.text());
  nlohmann::json& shard_of = index.at("weight_map");
  std::vector<std::pair<std::string, nlohmann::json>> added;
  for (const auto& [place, exchange] : plan.exchange_at)
    for (const TensorSource& tensor : exchange->added) added.emplace_back(tensor.name, shard_of.at(std::string(place)));
  for (const std::string_view name : plan.removed) shard_of.erase(std::string(name));
  for (auto& [name, shard] : added) shard_of[name] = std::move(shard);
  const auto metadata = index.find("metadata");
  if (metadata != index.end() && metadata->is_object() && metadata->contains("total_size"))
    (*metadata)["total_size"] = plan.tensor_bytes();
  return index.dump(2) + "\n";
}

void write_changed_index(const MappedFile& file, const ExportPlan& plan, const fs::path& target) {
  try {
    write_whole_file(changed_index(file, plan), target);
    return;
  } catch (const nlohmann::json::exception&) {
  } catch (const JsonProblem&) {
  }
  throw CheckpointError(cat(file.path().string(),
                            ": expected the index as it was opened, got another text; it was written to meanwhile: "
                            "start again"));
}

/// nullopt: as its file is. A quantize_config.json is not copied: what it says stands in the other.
std::optional<std::string> changed_config(const Checkpoint& base, const CheckpointChanges& changes) {
  if (changes.config_text || base.has_own_config()) return changes.config_text;
  return base.config_text();
}

/// Floats that JSON cannot say are bare where they were, which every program reads that read the file.
std::string with_floats_as_in(const MappedFile& file, const std::string& config) {
  const bool has_bare = bare_floats_as_objects(file.text()) != file.text();
  return has_bare ? objects_as_bare_floats(config) : config;
}

void export_side_file(const MappedFile& file, const std::optional<std::string>& config, const ExportPlan& plan,
                      const fs::path& target) {
  const fs::path name = file.path().filename();
  if (name == "config.json" && config)
    write_whole_file(with_floats_as_in(file, *config), target / name);
  else if (name == kIndexFile && !plan.removed.empty())
    write_changed_index(file, plan, target / name);
  else
    copy_whole_file(file, target / name);
}

}  // namespace

void export_checkpoint(const Checkpoint& base, const CheckpointChanges& changes, const fs::path& target) {
  if (base.gguf() != nullptr)
    throw CheckpointError(
        cat(base.folder().string(),
            ": a GGUF file is not written as a model folder: expected output.format: gguf or adapter"));
  const ExportPlan plan = plan_export(base, changes);
  std::error_code error;
  if (!fs::is_directory(target, error) || !folder_names(target).empty())
    throw CheckpointError(cat(target.string(), ": expected an existing, empty folder, got ",
                              fs::is_directory(target, error) ? "one with files in it" : "none",
                              "; make an empty folder"));

  base.check_unchanged();
  const size_t n_threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostWriters);
  for_each_in_parallel(base.shards().size(), n_threads, [&](size_t i) {
    const TensorFile& shard = base.shards()[i];
    if (!plan.shards[i].keeps_layout && plan.shards[i].tensors.empty()) return;  // no index would name it
    export_shard(shard, plan.shards[i], target / shard.path().filename());
  });
  for (const auto& file : base.side_files()) export_side_file(*file, changed_config(base, changes), plan, target);
  base.check_unchanged();                               // the copies too are of what was opened
  if (!plan.removed.empty()) Checkpoint::open(target);  // its index has to be of these shards
  sync_folder(target);
}

}  // namespace lancet
