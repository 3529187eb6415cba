#include "lancet/edit/partial_sums.h"

#include <torch/types.h>

#include <algorithm>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/placement.h"

namespace lancet {
namespace {

/// Raised when the format or the meaning of the file changes.
constexpr std::string_view kFormat = "lancet-partial-sums-1";
constexpr std::string_view kSuffix = ".partial.safetensors";
/// A save that took s seconds is followed by at least this many times s without one.
constexpr double kWorkPerSave = 20;

std::string sum_name(int64_t index) { return cat("sum.", index); }

/// Over the numbers as well as the sums: a flipped bit anywhere shows.
std::string content_hash(int64_t chunks, int64_t tokens, std::span<const TensorSource> sums) {
  ContentHash hash;
  hash.add(chunks).add(tokens);
  for (const TensorSource& sum : sums) hash.add(sum.bytes);
  return hash.hex();
}

const std::string& entry(const Metadata& metadata, const std::string& name) {
  const auto at = metadata.find(name);
  if (at == metadata.end()) throw CheckpointError(cat("no '", name, "' in its metadata"));
  return at->second;
}

int64_t number(const std::string& text) {
  const std::optional<int64_t> value = parse_whole_number(text);
  if (!value) throw CheckpointError(cat("'", text, "': not a number"));
  return *value;
}

/// Throws: CheckpointError saying what is wrong with it.
SavedPass read_pass(const std::filesystem::path& file, const std::string& key, int64_t layers, int64_t size) {
  const SafetensorsReader reader = SafetensorsReader::open(file);
  const Metadata& metadata = reader.metadata();
  if (entry(metadata, "format") != kFormat || entry(metadata, "key") != key)
    throw CheckpointError("written by another pass or another version");
  SavedPass pass{number(entry(metadata, "chunks")), number(entry(metadata, "tokens")), {}};
  std::vector<TensorSource> sources;
  for (int64_t i = 0; i < layers; ++i) {
    const TensorView view = reader.view(sum_name(i));
    const std::vector<int64_t> expected{size, size};
    if (view.dtype != DType::kF64 || view.shape != expected)
      throw CheckpointError(cat(sum_name(i), ": ", dtype_name(view.dtype), " ", shape_text(view.shape), ", expected ",
                                dtype_name(DType::kF64), " ", shape_text(expected)));
    pass.sums_FF.push_back(to_tensor(view).contiguous());
    sources.push_back({sum_name(i), view.dtype, view.shape, view.bytes});
  }
  if (content_hash(pass.chunks, pass.tokens, sources) != entry(metadata, "hash"))
    throw CheckpointError("its contents do not have the hash that they were saved with");
  return pass;
}

}  // namespace

PartialSums::PartialSums(const std::filesystem::path& folder, std::string key, double save_every_s)
    : file_(folder / (key + std::string(kSuffix))), key_(std::move(key)), save_every_s_(save_every_s) {}

std::optional<SavedPass> PartialSums::load(int64_t layers, int64_t size) const {
  if (!std::filesystem::exists(file_)) return std::nullopt;
  try {
    return read_pass(file_, key_, layers, size);
  } catch (const CheckpointError& error) {
    log_warning(cat("statistics: ", file_.string(), ": saved sums that cannot be used, the pass starts from the ",
                    "beginning: ", error.what()));
    return std::nullopt;
  }
}

bool PartialSums::due() const {
  if (refused_) return false;
  const double wait_s = save_every_s_ > 0 ? std::max(save_every_s_, kWorkPerSave * last_save_took_s_) : 0;
  return std::chrono::duration<double>(Clock::now() - last_saved_).count() >= wait_s;
}

void PartialSums::save(const SavedPass& pass) {
  const Clock::time_point begin = Clock::now();
  std::vector<Tensor> host;
  std::vector<TensorSource> sources;
  for (const Tensor& sum_FF : pass.sums_FF) {
    host.push_back(sum_FF.to(Placement::host()).contiguous());
    sources.push_back(to_source(sum_name(static_cast<int64_t>(sources.size())), host.back()));
  }
  const Metadata metadata{{"format", std::string(kFormat)},
                          {"key", key_},
                          {"chunks", std::to_string(pass.chunks)},
                          {"tokens", std::to_string(pass.tokens)},
                          {"hash", content_hash(pass.chunks, pass.tokens, sources)}};
  try {
    std::filesystem::create_directories(file_.parent_path());
    write_safetensors(file_, sources, metadata);
  } catch (const std::exception& error) {
    refused_ = true;
    log_warning(cat("statistics: the pass goes on, but cannot be continued if it is stopped: ", error.what()));
  }
  last_saved_ = Clock::now();
  last_save_took_s_ = std::chrono::duration<double>(last_saved_ - begin).count();
}

void PartialSums::remove_all(const std::filesystem::path& folder, const std::string& key) {
  std::error_code ignored;  // a file that stays is another run's waste of space, not a failure of this one
  std::vector<std::filesystem::path> files;
  std::filesystem::directory_iterator entry(folder, ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(key + ".") && name.ends_with(kSuffix)) files.push_back(entry->path());
  }
  for (const std::filesystem::path& file : files) std::filesystem::remove(file, ignored);
}

}  // namespace lancet
