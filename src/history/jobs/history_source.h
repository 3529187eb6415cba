// Reads stored edits: the folder of an output, and the job that made the edits.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/history/apply_job.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/models/model_files.h"
#include "lancet/pipeline/replayed_edits.h"

namespace lancet {

/// What an output in the form of an adapter becomes, if no override says it.
enum class AdapterOutputs { kStay, kBecomeModels };

class HistorySource {
 public:
  /// `edits`: an output, or its folder edits/, which may have been moved and renamed. `model`: if empty, the model is
  /// where the edits' base model was. Throws: ConfigError if there are no edits, or all were taken back;
  /// CheckpointError if the journal is damaged.
  HistorySource(const std::filesystem::path& edits, const std::filesystem::path& model);

  const Journal& journal() const { return journal_; }
  /// Read when it is first asked for. Throws: CheckpointError for what is damaged, or of other shapes than the model's.
  const EditHistory& history();
  const ModelFiles& files() const { return files_; }
  const std::filesystem::path& model() const { return model_; }
  /// Returns the output that has the edits; nullopt if they are a folder alone, for example one that somebody passed
  /// on.
  const std::optional<std::filesystem::path>& output() const { return output_; }

  struct Target {
    std::filesystem::path dir;
    IfExists if_exists = IfExists::kError;
    AdapterOutputs adapters = AdapterOutputs::kStay;
  };
  /// Returns the job that edited the batches of `setting`, with these requests and this output. Throws: ConfigError.
  ResolvedJob job(size_t setting, std::span<const EditRequest> requests, const Target& target,
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

/// Returns the last setting of the batches from `first` on. Throws: ConfigError if they have several settings that
/// differ in more than places of files and placement on devices.
size_t one_setting(const Journal& journal, size_t first);

/// All requests, one after another, and the indices of each batch's requests.
struct Numbered {
  std::vector<EditRequest> requests = {};
  std::vector<std::vector<int64_t>> batches = {};
};
Numbered numbered(const std::vector<std::vector<EditRequest>>& batches);
/// Numbers the requests of the current edits.
Numbered numbered(const Journal& journal);

/// Collective. Runs the job of given edits. Returns its output and, on root, its report. Throws: as run_edit_job().
MadeOutput make_output(const ResolvedJob& job, Communicator& communicator, ReplayedEdits given);

}  // namespace lancet
