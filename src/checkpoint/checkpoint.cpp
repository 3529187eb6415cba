#include "lancet/checkpoint/checkpoint.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "found_instead.h"
#include "lancet/checkpoint/model_place.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/file_handle.h"
#include "lancet/io/files.h"
#include "lancet/io/model_file_names.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// {"metadata": {...}, "weight_map": {...}}; metadata may hold more.
constexpr int kDeepestIndex = 16;

using Files = std::vector<std::shared_ptr<const MappedFile>>;

std::string text_of(const MappedFile& file) {
  constexpr uint64_t kLargest = 100'000'000;  // the index of the largest models takes a tenth of it
  if (file.bytes().size() > kLargest)
    throw CheckpointError(cat(file.path().string(), ": expected at most ", bytes_text(kLargest), ", got ",
                              bytes_text(file.bytes().size()), "; download the file again"));
  return file.text();
}

/// The snapshot that a cache's models--org--name folder means: refs/main, or the only one.
fs::path resolve_snapshot(const fs::path& cache) {
  const std::vector<std::string> snapshots = folder_names(cache / "snapshots");
  if (has_entry(cache / "refs" / "main")) {
    std::string revision = text_of(*MappedFile::open(cache / "refs" / "main"));
    revision.erase(std::find_if(revision.begin(), revision.end(), [](char c) { return c == '\n' || c == '\r'; }),
                   revision.end());
    if (std::ranges::find(snapshots, revision) == snapshots.end())
      throw CheckpointError(cat((cache / "refs" / "main").string(), ": expected one of the snapshots [",
                                join(snapshots), "], got '", printable(revision),
                                "'; download the model again or name a snapshot's folder"));
    return cache / "snapshots" / revision;
  }
  if (snapshots.size() == 1) return cache / "snapshots" / snapshots.front();
  throw CheckpointError(cat(cache.string(), ": expected refs/main or exactly one folder in snapshots/, got ",
                            snapshots.size(), " snapshots [", join(snapshots), "]; name the snapshot's folder itself"));
}

fs::path resolve_folder(const fs::path& path) {
  if (!is_folder(path)) refuse_place(path);
  const fs::path folder =
      !has_entry(path / "config.json") && is_folder(path / "snapshots") ? resolve_snapshot(path) : path;
  if (!has_entry(folder / "config.json")) refuse_folder(folder);
  return folder;
}

using WeightMap = std::map<std::string, std::string>;  // tensor -> shard's file name

WeightMap read_index(const MappedFile& file) {
  const fs::path& path = file.path();
  nlohmann::json index;
  try {
    index = parse_strict_json(text_of(file), kDeepestIndex);
  } catch (const JsonProblem& problem) {
    throw CheckpointError(cat(path.string(), ": ", problem.what(), "; download the file again"));
  }
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw CheckpointError(cat(path.string(), ": expected an object 'weight_map', got none; download the file again"));
  WeightMap shard_of;
  for (const auto& [tensor, value] : index["weight_map"].items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : std::string();
    // A path would let an index read, and an export write, outside its folder.
    if (shard.empty() || shard == "." || shard == ".." || shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos)
      throw CheckpointError(cat(path.string(), ": tensor '", printable(tensor),
                                "': expected the plain file name of a shard, got ",
                                printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)),
                                "; download the file again"));
    shard_of[tensor] = shard;
  }
  return shard_of;
}

/// Whether the index has all tensors of the shards; all problems in one error. What it names beyond them the model may
/// not need (absent_names()).
void check_index(const fs::path& index, const WeightMap& shard_of, const std::vector<TensorFile>& shards) {
  constexpr size_t kMostShown = 10;
  std::vector<std::string> problems;
  for (const TensorFile& shard : shards) {
    const std::string file = shard.path().filename().string();
    for (const TensorInfo& info : shard.tensors()) {
      const auto entry = shard_of.find(info.name);
      if (entry != shard_of.end() && entry->second == file) continue;
      problems.push_back(cat("tensor '", printable(info.name), "' of shard ", file,
                             ": expected an entry in the index, got ",
                             entry == shard_of.end() ? "none" : "an entry for " + entry->second));
    }
  }
  if (problems.empty()) return;
  const size_t count = problems.size();
  if (count > kMostShown) {
    problems.resize(kMostShown);
    problems.push_back(cat("and ", count - kMostShown, " more"));
  }
  throw CheckpointError(cat(index.string(), ": index and shards disagree:\n  ", join(problems, "\n  "),
                            "\n  index and shards are of different versions: download the model again"));
}

/// What an export copies besides the weights; the index only where that is how the weights are found.
Files open_side_files(const fs::path& folder) {
  Files files;
  if (!has_entry(folder / kWeightsFile) && has_entry(folder / kIndexFile)) {
    refuse_other_file(folder / kIndexFile, "an index of shards");
    files.push_back(MappedFile::open(folder / kIndexFile));
  }
  for (const char* const name : kSidecarFiles)
    if (has_entry(folder / name)) {
      refuse_other_file(folder / name, "a file of the model");
      files.push_back(MappedFile::open(folder / name));
    }
  return files;
}

/// Null: there is none.
const MappedFile* find_file(const Files& files, std::string_view name) {
  const auto found = std::ranges::find_if(files, [&](const auto& file) { return file->path().filename() == name; });
  return found == files.end() ? nullptr : found->get();
}

std::vector<TensorFile> open_shards(const fs::path& folder, const MappedFile* index_file) {
  std::vector<TensorFile> shards;
  if (has_entry(folder / kWeightsFile)) {
    shards.push_back(SafetensorsReader::open(folder / kWeightsFile));
    return shards;
  }
  if (index_file == nullptr) refuse_weights(folder);
  const fs::path& index = index_file->path();
  const WeightMap shard_of = read_index(*index_file);
  std::set<std::string> files;
  for (const auto& [tensor, file] : shard_of) files.insert(file);
  std::vector<std::string> missing;
  for (const std::string& file : files)
    if (!has_entry(folder / file)) missing.push_back(file);
  if (!missing.empty())
    throw CheckpointError(cat(index.string(), ": expected ", files.size(), " shards, got a folder without ",
                              join(missing), "; download the missing files"));
  for (const std::string& file : files) shards.push_back(SafetensorsReader::open(folder / file));
  check_index(index, shard_of, shards);
  return shards;
}

/// Whether two tensors differ, as far as their shapes, types and ends show: an edit changes numbers all over.
bool differ(const TensorView& one, const TensorView& other) {
  constexpr size_t kLooked = 4096;
  if (one.dtype != other.dtype || one.shape != other.shape) return true;
  const auto ends = [&](const TensorView& tensor) {
    const size_t size = std::min(kLooked, tensor.bytes.size());
    TensorView first = tensor, last = tensor;
    first.bytes = tensor.bytes.first(size);
    last.bytes = tensor.bytes.last(size);
    ContentHash hash;
    first.add_to(hash);
    last.add_to(hash);
    return hash.hex();
  };
  return ends(one) != ends(other);
}

/// What stands in shards beside a whole file that is read in their place, where the two disagree; empty: nothing.
std::string shards_beside(const fs::path& folder, const TensorFile& whole) {
  if (!has_entry(folder / kIndexFile)) return "";
  std::vector<std::string> others;
  size_t seen = 0;
  try {
    const WeightMap shard_of = read_index(*MappedFile::open(folder / kIndexFile));
    std::map<std::string, SafetensorsReader> shards;
    for (const auto& [tensor, file] : shard_of) {
      if (!has_entry(folder / file)) return "";  // an index that was left behind
      if (!shards.contains(file)) shards.emplace(file, SafetensorsReader::open(folder / file));
      ++seen;
      const SafetensorsReader& shard = shards.at(file);
      if (shard.contains(tensor) && (!whole.contains(tensor) || differ(whole.view(tensor), shard.view(tensor))))
        others.push_back(tensor);
    }
  } catch (const CheckpointError&) {
    return "";  // nobody reads them
  }
  if (others.empty()) return "";
  return cat(folder.string(), ": has ", kWeightsFile,
             ", which is read, and shards beside it that have other numbers in ", others.size(), " of ", seen,
             " tensors (", others.front(), others.size() > 1 ? ", ...)" : ")",
             ": one of the two is of another model; take away what is not meant");
}

bool was_written(const MappedFile& file) {
  const FileStamp now = file.stamp_now();
  return now.size_bytes != file.stamp().size_bytes || now.written_ns != file.stamp().written_ns;
}

[[noreturn]] void refuse_change(const fs::path& file) {
  throw CheckpointError(cat(file.string(),
                            ": expected the file as it was opened, got one that was written to since; leave the "
                            "model as it is while lancet works with it, and start again"));
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& path) {
  if (const std::optional<fs::path> file = find_gguf(path)) return open_gguf(*file);
  Checkpoint checkpoint;
  checkpoint.folder_ = resolve_folder(path);
  checkpoint.side_files_ = open_side_files(checkpoint.folder_);
  const std::string config = bare_floats_as_objects(text_of(*find_file(checkpoint.side_files_, "config.json")));
  checkpoint.config_text_ = with_quantize_config(config, checkpoint.folder_);
  checkpoint.has_own_config_ = checkpoint.config_text_ == config;
  checkpoint.shards_ = open_shards(checkpoint.folder_, find_file(checkpoint.side_files_, kIndexFile));
  for (size_t i = 0; i < checkpoint.shards_.size(); ++i)
    for (const TensorInfo& info : checkpoint.shards_[i].tensors()) checkpoint.shard_of_[info.name] = i;
  return checkpoint;
}

std::vector<std::string> Checkpoint::tensor_names() const {
  std::vector<std::string> names;
  names.reserve(shard_of_.size());
  for (const auto& [name, shard] : shard_of_) names.push_back(name);
  return names;
}

const TensorInfo& Checkpoint::info(std::string_view name) const {
  const auto found = shard_of_.find(name);
  if (found != shard_of_.end()) return shards_[found->second].info(name);
  const std::string near = nearest(name, tensor_names());
  throw CheckpointError(cat(folder_.string(), ": expected a tensor '", printable(name), "', got ", shard_of_.size(),
                            " tensors without it; ",
                            near.empty() ? "check the name" : cat("did you mean '", near, "'?")));
}

TensorView Checkpoint::view(std::string_view name) const {
  info(name);  // throws for an unknown name
  return shards_[shard_of_.find(name)->second].view(name);
}

uint64_t Checkpoint::tensor_bytes() const {
  uint64_t bytes = 0;
  for (const TensorFile& shard : shards_)
    for (const TensorInfo& info : shard.tensors()) bytes += info.end - info.begin;
  return bytes;
}

std::string Checkpoint::content_hash() const {
  if (content_hash_.empty()) {
    std::string hash = hash_content();
    for (const TensorFile& shard : shards_)
      if (was_written(shard.file())) refuse_change(shard.path());  // perhaps between two reads of one run
    content_hash_ = std::move(hash);
  }
  return content_hash_;
}

void Checkpoint::check_unchanged() const {
  for (const auto& file : side_files_)
    if (was_written(*file)) refuse_change(file->path());
  for (const TensorFile& shard : shards_) {
    if (shard.file().stamp_now() == shard.file().stamp()) continue;
    if (content_hash_.empty() ? was_written(shard.file()) : hash_content() != content_hash_)
      refuse_change(shard.path());
    if (!content_hash_.empty()) return;  // the hash is of all shards
  }
}

std::string Checkpoint::hash_content() const {
  ContentHash hash;
  for (const auto& [name, shard] : shard_of_) {
    const TensorView tensor = shards_[shard].view(name);
    hash.add(name).add(dtype_name(tensor.dtype)).add(static_cast<int64_t>(tensor.shape.size()));
    for (const int64_t size : tensor.shape) hash.add(size);
    tensor.add_to(hash);
    count_progress();
  }
  return hash.hex();
}

namespace {

using OrderedJson = nlohmann::ordered_json;

/// Whether `config` has such settings, also in the part of a multi-modal configuration that describes the language
/// model (quant_formats/scheme_settings.h).
bool has_settings(const OrderedJson& config) {
  const auto has = [](const OrderedJson& object) {
    for (const char* key : {"quantization_config", "compression_config"})
      if (const auto at = object.find(key);
          at != object.end() && !at->is_null() && *at != OrderedJson(false) && *at != OrderedJson::object())
        return true;
    return false;
  };
  if (has(config)) return true;
  const auto nested = config.find("text_config");
  return nested != config.end() && nested->is_object() && has(*nested);
}

/// nullopt: its readers say what is wrong with it.
std::optional<OrderedJson> parse_config_json(std::string_view text) {
  try {
    return parse_ordered_object(text);
  } catch (const JsonProblem&) {
    return std::nullopt;
  }
}

OrderedJson load_quantize_config(const std::filesystem::path& file) {
  try {
    return parse_ordered_object(MappedFile::open(file)->text());
  } catch (const JsonProblem& problem) {
    throw CheckpointError(cat(file.string(), ": expected a JSON object, since config.json has no quantization_config, ",
                              "got ", problem.what(), "; download the file again"));
  }
}

}  // namespace

std::vector<std::string> absent_names(const Checkpoint& checkpoint) {
  std::vector<std::string> absent;
  if (const MappedFile* index = find_file(checkpoint.side_files(), kIndexFile))
    for (const auto& [tensor, file] : read_index(*index))
      if (!checkpoint.contains(tensor)) absent.push_back(tensor);
  return absent;
}

std::string disagreement(const Checkpoint& checkpoint) {
  const TensorFile& first = checkpoint.shards().front();
  return first.path().filename() == kWeightsFile ? shards_beside(checkpoint.folder(), first) : "";
}

std::string config_text_of(const std::filesystem::path& file) {
  refuse_no_config(file);
  return bare_floats_as_objects(text_of(*MappedFile::open(file)));
}

std::string with_quantize_config(std::string config_json, const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kQuantizeConfigFile;
  if (!has_entry(file)) return config_json;
  std::optional<OrderedJson> config = parse_config_json(config_json);
  if (!config || has_settings(*config)) return config_json;
  OrderedJson settings = load_quantize_config(file);
  if (const auto method = settings.find("quant_method"); method == settings.end() || method->is_null())
    settings["quant_method"] = "gptq";
  (*config)["quantization_config"] = std::move(settings);
  return config->dump(2) + "\n";
}

}  // namespace lancet
