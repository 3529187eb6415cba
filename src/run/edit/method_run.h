// One method's edit of the session's requests, from its statistics to the measure behind it. Writes no output.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "earlier_output.h"
#include "edit_progress.h"
#include "edit_recorder.h"
#include "edit_session.h"
#include "job_statistics.h"
#include "lancet/run/edit_job.h"
#include "output/output_form.h"
#include "stopwatch.h"

namespace lancet {

/// What a method's edits of one model have in common: made for the first, of the unedited model.
struct PreparedMethod {
  std::vector<std::string> contexts;
  std::optional<JobStatistics> statistics;
  bool is_ready = false;
};

enum class MethodWork {
  kEdits,
  kSolves,   ///< keys and residuals are there: contexts are needed for nothing
  kRestores  ///< all edits are there: contexts and statistics are needed for nothing
};

class MethodRun {
 public:
  /// What can fail before any weight is read; `job` and `session` outlive this. `prepared`: an earlier run's, of the
  /// same job and model; null: none. `output`: resolved; nullopt: nothing is written, and edited weights are rounded to
  /// full precision.
  MethodRun(const JobConfig& job, EditSession& session, Communicator& ranks,
            std::shared_ptr<PreparedMethod> prepared = nullptr, std::optional<OutputOptions> output = std::nullopt,
            MethodWork kind = MethodWork::kEdits);

  /// Root's: of the output that the job goes on from.
  std::span<const EditRequest> earlier_edits() const {
    return earlier_ ? std::span(earlier_->requests()) : std::span<const EditRequest>();
  }

  /// Collective, before the model is loaded: leaves out of work() what root's cache saves, text that is written or
  /// read.
  void look_into_cache();
  /// What memory is counted for.
  const JobWork& work() const { return work_; }
  /// Also what comes before and behind the edit goes there.
  EditReport& report() { return report_; }
  Stopwatch& stopwatch() { return stopwatch_; }

  /// Collective: contexts and statistics, of the unedited model, which outlives what is prepared.
  void prepare(const CausalLM& model);
  const std::shared_ptr<PreparedMethod>& prepared() const { return prepared_; }

  /// What an edit begins behind, and where it keeps what it finished.
  struct Start {
    std::optional<std::filesystem::path> unfinished = {};  ///< until the job ends; nullopt: nowhere
    std::optional<EditHistory> behind = {};                ///< edits whose changes the transaction has
    /// Root's: edits that are there, the first of `batches`.
    std::optional<EditHistory> done = {};
    std::optional<std::vector<std::vector<int64_t>>> batches = {};  ///< nullopt: by the job's schedule
    bool records = false;                                           ///< a history of the edits is kept
  };
  /// Collective: the edit and the measure behind it; the transaction then holds the change.
  void edit(CausalLM& model, WeightTransaction& transaction, Start start);

  /// Behind prepare(): for solves alone. Outlives neither this nor the model.
  EditContext context(const CausalLM& model) const;

  /// How the weights are written, and so are measured.
  const OutputForm& form() const { return *form_; }

  /// Behind an edit() that records, on root: all edits, those of earlier jobs among them.
  const EditHistory& history() const { return *history_; }
  EditHistory take_history() { return std::move(*history_); }
  /// The same way: of the weights with all edits.
  const std::vector<WeightHash>& weight_hashes() const { return weight_hashes_; }

 private:
  bool has_moments() const { return prepared_->statistics && prepared_->statistics->has_moments(); }
  std::vector<EditRequest> earlier_requests() const;
  std::vector<EditRequest> standing_requests(const Start& start) const;
  RecordedSetting recorded_setting() const;
  std::string model_key() const;
  std::string setting_key(WeightTransaction& transaction) const;

  const JobConfig& job_;
  const EditSession& session_;
  Communicator& ranks_;
  EditReport report_;
  Stopwatch stopwatch_{report_.stages};
  std::optional<EarlierOutput> earlier_;
  std::shared_ptr<PreparedMethod> prepared_;
  OutputOptions output_;
  std::unique_ptr<OutputForm> form_;
  JobWork work_;
  MethodWork kind_;
  std::optional<EditHistory> history_;
  std::vector<WeightHash> weight_hashes_;
};

}  // namespace lancet
