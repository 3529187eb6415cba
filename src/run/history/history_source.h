// Where edits come from that are data: an output's folder, and the job that they were made by.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/edits/edit_history.h"
#include "lancet/job/job_config.h"
#include "lancet/models/model_files.h"

namespace lancet {

class HistorySource {
 public:
  /// `edits`: an output, or its folder edits/. `model`: empty: where the base lay. Throws: ConfigError when there are
  /// no edits, or none that stand; CheckpointError for a journal that is damaged.
  HistorySource(const std::filesystem::path& edits, const std::filesystem::path& model);

  const Journal& journal() const { return *journal_; }
  /// Read when it is first asked for. Throws: CheckpointError for what is damaged, or of other shapes than the model's.
  const EditHistory& history();
  const ModelFiles& files() const { return files_; }
  const std::filesystem::path& model() const { return model_; }

  struct Target {
    std::filesystem::path dir;
    IfExists if_exists = IfExists::kError;
  };
  /// The job that batch `setting` was edited by, with these requests and this output. Throws: ConfigError.
  JobConfig job(size_t setting, std::span<const EditRequest> requests, const Target& target,
                std::span<const std::string> overrides) const;

 private:
  std::filesystem::path output_;  ///< the output's folder
  std::filesystem::path model_;
  ModelFiles files_;
  std::optional<Journal> journal_;
  std::optional<EditHistory> history_;
};

/// The setting of all of the batches from `first` on. Throws: ConfigError when they have several.
size_t one_setting(const Journal& journal, size_t first);

/// Of all batches that stand, in order.
std::vector<EditRequest> requests_of(const Journal& journal);

/// Requests of each batch, one behind the other.
std::vector<std::vector<int64_t>> batches_of(const Journal& journal);

}  // namespace lancet
