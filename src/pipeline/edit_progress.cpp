#include "lancet/pipeline/edit_progress.h"

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/outcome/report_json.h"

namespace lancet {
namespace {

/// Raised when what is kept changes.
constexpr const char* kFormat = "lancet-progress-4";
constexpr const char* kFile = "progress.json";
constexpr const char* kNotUsed = "the progress of an interrupted run is not used: ";

std::vector<std::vector<int64_t>> requests_of(const std::vector<BatchReport>& batches) {
  std::vector<std::vector<int64_t>> requests;
  for (const BatchReport& batch : batches) requests.push_back(batch.requests);
  return requests;
}

/// Hashes all that progress.json says, with the journal beside it, which has what the batches' reports say.
std::string progress_hash(const std::string& key, size_t n_batches, const Journal& journal) {
  return ContentHash().add(kFormat).add(key).add(static_cast<int64_t>(n_batches)).add(journal.text()).hex();
}

BatchReport report_of(const BatchEntry& batch) {
  if (!batch.report.is_null()) return from_record(batch.report.dump(), batch.edits.size());
  BatchReport report;
  report.outcome.requests.resize(batch.edits.size());
  report.outcome.columns = batch.columns;
  return report;
}

}  // namespace

EditProgress progress_of(EditHistory history, size_t n_earlier) {
  EditProgress progress{{}, std::move(history)};
  const std::vector<BatchEntry>& batches = progress.history.journal().batches();
  for (size_t i = n_earlier; i < batches.size(); ++i) progress.batches.push_back(report_of(batches[i]));
  return progress;
}

std::string ProgressStore::key(const std::vector<std::vector<int64_t>>& batches,
                               std::span<const EditRequest> requests) const {
  ContentHash hash;
  hash.add(kFormat).add(kVersion).add(setting_key_);
  for (const std::vector<int64_t>& batch : batches) {
    hash.add(static_cast<int64_t>(batch.size()));
    for (const int64_t index : batch) hash.add(to_json_line(requests[static_cast<size_t>(index)]));
  }
  return hash.hex();
}

void ProgressStore::save(const EditProgress& progress, std::span<const EditRequest> requests) {
  const std::string key = this->key(requests_of(progress.batches), requests);
  make_unfinished(unfinished_);
  OutputFolder folder(folder_, IfExists::kReplace, kProgressKind);
  progress.history.write(folder.staging(), config_, {.earlier = is_sound_ ? folder_ : std::filesystem::path()});
  write_text_file(folder.staging() / kFile,
                  Json{{"format", kFormat},
                       {"key", key},
                       {"batches", progress.batches.size()},
                       {"content_hash", progress_hash(key, progress.batches.size(), progress.history.journal())}}
                      .dump());
  folder.commit();
  is_sound_ = true;
}

std::optional<EditProgress> ProgressStore::load(const std::vector<std::vector<int64_t>>& batches,
                                                std::span<const EditRequest> requests) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder_ / kFile, ignored)) return std::nullopt;
  try {
    std::optional<EditProgress> progress = read(batches, requests);
    is_sound_ = true;
    return progress;
  } catch (const Error& error) {
    log_warning(cat(kNotUsed, error.what()));
  } catch (const JsonProblem& problem) {
    log_warning(cat(kNotUsed, (folder_ / kFile).string(), ": ", problem.what()));
  } catch (const Json::exception& error) {
    log_warning(cat(kNotUsed, (folder_ / kFile).string(), ": ", error.what()));
  }
  return std::nullopt;
}

EditProgress ProgressStore::read(const std::vector<std::vector<int64_t>>& batches,
                                 std::span<const EditRequest> requests) const {
  const std::filesystem::path path = folder_ / kFile;
  const Json json = parse_ordered_json(read_text_file(path, "progress"));
  const auto key = json.at("key").get<std::string>();
  const Json& finished = json.at("batches");
  const size_t n = finished.is_number_unsigned() ? finished.get<size_t>() : 0;
  if (json.at("format") != kFormat || n == 0 || n > batches.size() ||
      key != this->key({batches.begin(), batches.begin() + static_cast<int64_t>(n)}, requests))
    throw ConfigError(cat(path.string(), ": it is of another job, or of other first batches"));
  EditHistory history = EditHistory::load(folder_, config_);
  const size_t n_standing = history.journal().batches().size();
  if (n > n_standing || json.at("content_hash") != progress_hash(key, n, history.journal()))
    throw CheckpointError(cat(path.string(), ": its content has not the hash that it was saved with: it is damaged"));
  EditProgress progress = progress_of(std::move(history), n_standing - n);
  for (size_t i = 0; i < n; ++i) {
    if (progress.batches[i].outcome.requests.size() != batches[i].size())
      throw CheckpointError(cat(path.string(), ": the journal's batches are others than the job's: it is damaged"));
    progress.batches[i].requests = batches[i];
  }
  return progress;
}

}  // namespace lancet
