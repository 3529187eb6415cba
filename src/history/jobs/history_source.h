// Where edits come from that are data: an output's folder, and the job that they were made by.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/history/apply_job.h"
#include "lancet/job/job_config.h"
#include "lancet/models/model_files.h"
#include "lancet/pipeline/replayed_edits.h"

namespace lancet {

/// What is made of an output that is an adapter, where no override says it.
enum class AdapterOutputs { kStay, kBecomeModels };

class HistorySource {
 public:
  /// `edits`: an output, or its folder edits/, which may lie anywhere under any name. `model`: empty: where the base
  /// lay. Throws: ConfigError when there are no edits, or none that stand; CheckpointError for a journal that is
  /// damaged.
  HistorySource(const std::filesystem::path& edits, const std::filesystem::path& model);

  const Journal& journal() const { return journal_; }
  /// Read when it is first asked for. Throws: CheckpointError for what is damaged, or of other shapes than the model's.
  const EditHistory& history();
  const ModelFiles& files() const { return files_; }
  const std::filesystem::path& model() const { return model_; }
  /// The output that the edits lie in; nullopt: they are a folder of edits alone, such as somebody passed on.
  const std::optional<std::filesystem::path>& output() const { return output_; }

  struct Target {
    std::filesystem::path dir;
    IfExists if_exists = IfExists::kError;
    AdapterOutputs adapters = AdapterOutputs::kStay;
  };
  /// The job that batch `setting` was edited by, with these requests and this output. Throws: ConfigError.
  JobConfig job(size_t setting, std::span<const EditRequest> requests, const Target& target,
                std::span<const std::string> overrides) const;

 private:
  std::filesystem::path given_;  ///< folder as it was named
  std::filesystem::path edits_;  ///< folder with the journal
  std::optional<std::filesystem::path> output_;
  Journal journal_;
  std::filesystem::path model_;
  ModelFiles files_;
  std::optional<EditHistory> history_;
};

/// The last setting of the batches from `first` on. Throws: ConfigError when they were edited by several that differ in
/// more than where files lay and how runs were placed.
size_t one_setting(const Journal& journal, size_t first);

/// Requests one after the other, and which of them each batch has.
struct Numbered {
  std::vector<EditRequest> requests = {};
  std::vector<std::vector<int64_t>> batches = {};
};
Numbered numbered(const std::vector<std::vector<EditRequest>>& batches);
/// Numbers the requests that stand.
Numbered numbered(const Journal& journal);

/// Collective: the job of edits that are given, its output and, on root, its report. Throws: as run_edit_job().
MadeOutput make_output(const JobConfig& job, Communicator& communicator, ReplayedEdits given);

}  // namespace lancet
