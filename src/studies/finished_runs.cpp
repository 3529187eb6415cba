#include "lancet/studies/finished_runs.h"

#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

/// Increase the number when the content of a kept run changes.
constexpr SealedFormat kFormat{"lancet-finished-run-1"};
constexpr const char* kRunFact = "run";
constexpr const char* kText = "text";

/// Sections of a job that change no result: places of files, and the model, which has its own hash.
constexpr std::string_view kPlaces[] = {"model", "output", "cache"};

void add_stamp(const fs::path& path, ContentHash& hash) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return;
  hash.add(path.string()).add(static_cast<int64_t>(fs::file_size(path, error)));
  hash.add(static_cast<int64_t>(fs::last_write_time(path, error).time_since_epoch().count()));
}

/// Adds each file that a value of the job names, and each file in a folder that a value names.
void add_files(const ConfigTree& tree, ContentHash& hash) {
  for (const ConfigTree& item : tree.items) add_files(item, hash);
  for (const auto& [key, value] : tree.entries)
    if (std::ranges::find(kPlaces, key) == std::end(kPlaces)) add_files(value, hash);
  const fs::path path(tree.scalar);
  if (tree.kind != ConfigTree::Kind::kScalar || !path.is_absolute()) return;
  std::error_code error;
  if (!fs::is_directory(path, error)) return add_stamp(path, hash);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path, error)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const fs::path& file : files) add_stamp(file, hash);
}

std::string read_text(const fs::path& path) {
  const SealedFile file = SealedFile::open(path, kFormat);
  if (file.fact(kRunFact) != path.stem().string())
    throw CheckpointError(path.string() + ": not of the run that it is named after");
  for (const auto& [name, tensor] : load_tensors(file))
    if (name == kText && tensor.scalar_type() == at::kByte && tensor.dim() == 1)
      return {static_cast<const char*>(tensor.const_data_ptr()), static_cast<size_t>(tensor.numel())};
  throw CheckpointError(path.string() + ": expected a text in it, found none");
}

}  // namespace

fs::path FinishedRuns::file(const std::string& key) const { return kept_.folder / (key + ".safetensors"); }

void FinishedRuns::tell(const std::string& name) const {
  if (kept_.on_kept) kept_.on_kept(name);
}

std::optional<std::string> FinishedRuns::find(const std::string& key, const std::string& name) const {
  std::error_code ignored;
  if (kept_.folder.empty() || !fs::exists(file(key), ignored)) return std::nullopt;
  try {
    std::string text = read_text(file(key));
    tell(name);
    return text;
  } catch (const CheckpointError& error) {
    log_warning(cat("the finished run of ", name, " is not used: ", error.what(), ": it is run again"));
    return std::nullopt;
  }
}

void FinishedRuns::keep(const std::string& key, const std::string& text, const std::string& name) const {
  if (kept_.folder.empty()) return;
  make_unfinished(kept_.folder);
  Tensor bytes = torch::empty({static_cast<int64_t>(text.size())}, torch::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  write_tensors(file(key), kFormat, {{kText, bytes}}, {{kRunFact, key}});
  tell(name);
}

std::string run_key(const StudySetting& setting, const ConfigTree& resolved, std::span<const EditRequest> requests) {
  ConfigTree job = resolved;
  job.erase("output");
  ContentHash hash;
  hash.add(kFormat.name).add(kVersion).add(setting.weights).add(setting.config_json).add(setting.computed_on);
  for (const std::string& question : setting.questions) hash.add(question);
  hash.add(to_yaml(job));
  for (const EditRequest& request : requests) hash.add(to_json_line(request));
  add_files(job, hash);
  return hash.hex();
}

void RunsLeft::end_run() {
  seconds_ += std::chrono::duration<double>(stage_now() - begun_).count();
  ++done_;
}

std::string RunsLeft::text() const {
  const int64_t over = done_ + skipped_;
  std::string text = cat(over, " of ", total_, total_ == 1 ? " run" : " runs", " done");
  if (done_ > 0 && over < total_)
    text += cat(", about ", duration_text(seconds_ / static_cast<double>(done_) * static_cast<double>(total_ - over)),
                " left");
  return text;
}

}  // namespace lancet
