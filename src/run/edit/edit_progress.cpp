#include "edit_progress.h"

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "results/report_json.h"

namespace lancet {
namespace {

/// Raised when what is kept changes.
constexpr const char* kFormat = "lancet-progress-3";
constexpr const char* kFile = "progress.json";

std::vector<std::vector<int64_t>> requests_of(const std::vector<BatchReport>& batches) {
  std::vector<std::vector<int64_t>> requests;
  for (const BatchReport& batch : batches) requests.push_back(batch.requests);
  return requests;
}

/// Of all that progress.json says, with the journal beside it.
std::string progress_hash(const std::string& key, const std::vector<std::string>& records, const Journal& journal) {
  ContentHash hash;
  hash.add(kFormat).add(key).add(journal.text());
  for (const std::string& record : records) hash.add(record);
  return hash.hex();
}

}  // namespace

EditProgress progress_of(EditHistory history) {
  EditProgress progress{{}, std::move(history)};
  for (const BatchEntry& batch : progress.history.journal().batches()) {
    if (!batch.report.is_null()) {
      progress.batches.push_back(from_record(batch.report.dump(), batch.edits.size()));
      continue;
    }
    BatchReport& report = progress.batches.emplace_back();
    report.outcome.requests.resize(batch.edits.size());
    report.outcome.columns = batch.columns;
  }
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
  std::vector<std::string> records;
  for (const BatchReport& batch : progress.batches) records.push_back(to_record(batch));
  const std::string key = this->key(requests_of(progress.batches), requests);
  make_unfinished(unfinished_);
  OutputFolder folder(folder_, IfExists::kReplace, kProgressKind);
  progress.history.write(folder.staging(), config_, {.earlier = is_sound_ ? folder_ : std::filesystem::path()});
  write_text_file(folder.staging() / kFile,
                  Json{{"format", kFormat},
                       {"key", key},
                       {"batches", records},
                       {"content_hash", progress_hash(key, records, progress.history.journal())}}
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
    log_warning(cat("the progress of an interrupted run is not used: ", error.what()));
  } catch (const Json::exception& error) {
    log_warning(
        cat("the progress of an interrupted run is not used: ", (folder_ / kFile).string(), ": ", error.what()));
  }
  return std::nullopt;
}

EditProgress ProgressStore::read(const std::vector<std::vector<int64_t>>& batches,
                                 std::span<const EditRequest> requests) const {
  const std::filesystem::path path = folder_ / kFile;
  const Json json = Json::parse(read_text_file(path, "progress"));
  const auto records = json.at("batches").get<std::vector<std::string>>();
  const auto key = json.at("key").get<std::string>();
  if (json.at("format") != kFormat || records.empty() || records.size() > batches.size() ||
      key != this->key({batches.begin(), batches.begin() + static_cast<int64_t>(records.size())}, requests))
    throw ConfigError(cat(path.string(), ": it is of another job, or of other first batches"));
  EditProgress progress{{}, EditHistory::load(folder_, config_)};
  if (json.at("content_hash") != progress_hash(key, records, progress.history.journal()))
    throw CheckpointError(cat(path.string(), ": its content has not the hash that it was saved with: it is damaged"));
  for (size_t i = 0; i < records.size(); ++i) {
    progress.batches.push_back(from_record(records[i], batches[i].size()));
    progress.batches.back().requests = batches[i];
  }
  return progress;
}

}  // namespace lancet
