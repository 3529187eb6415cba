// Where a job of several batches stands, kept beside its output so that a killed one goes on after the last batch. It
// is found again only by all that this depends on.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/outcome/batch_report.h"

namespace lancet {

struct EditProgress {
  std::vector<BatchReport> batches;  ///< the finished ones
  EditHistory history;               ///< them, after those of earlier jobs
};

/// Returns the progress in a history whose first `n_earlier` batches are those of earlier jobs, the others this job's.
/// Batches that have no report get an empty one. Throws: as from_record().
EditProgress progress_of(EditHistory history, size_t n_earlier = 0);

class ProgressStore {
 public:
  /// `unfinished`: the folder of what the run has finished; `config` outlives this. `setting_key`: of all that a
  /// batch's result depends on besides the requests so far.
  ProgressStore(std::filesystem::path unfinished, const ModelConfig& config, std::string setting_key)
      : unfinished_(std::move(unfinished)),
        folder_(unfinished_ / kProgressFolder),
        config_(config),
        setting_key_(std::move(setting_key)) {}

  /// Takes the place of what was saved before, at once. Throws: CheckpointError when the disk refuses.
  void save(const EditProgress& progress, std::span<const EditRequest> requests);

  /// What a job that begins with the same batches of `requests` had finished; nullopt when there is none. What is
  /// damaged, or another job's, is named in a warning.
  std::optional<EditProgress> load(const std::vector<std::vector<int64_t>>& batches,
                                   std::span<const EditRequest> requests);

 private:
  EditProgress read(const std::vector<std::vector<int64_t>>& batches, std::span<const EditRequest> requests) const;
  std::string key(const std::vector<std::vector<int64_t>>& batches, std::span<const EditRequest> requests) const;

  std::filesystem::path unfinished_;
  std::filesystem::path folder_;  // in it
  const ModelConfig& config_;
  std::string setting_key_;
  bool is_sound_ = false;  ///< what is saved was read or written by this: only then its files are linked to
};

}  // namespace lancet
