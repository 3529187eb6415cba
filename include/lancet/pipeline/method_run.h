// One method's edit of a job's requests, from its statistics to the measure after it. Writes no output.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/export/output_form.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/outcome/stopwatch.h"
#include "lancet/pipeline/earlier_output.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/edit_recorder.h"
#include "lancet/pipeline/job_statistics.h"

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

struct MethodOptions {
  std::shared_ptr<PreparedMethod> prepared = {};  ///< an earlier run's, of the same job and model; null: none
  /// Resolved; nullopt: nothing is written, and edited weights are rounded to full precision.
  std::optional<OutputOptions> output = {};
  MethodWork work = MethodWork::kEdits;
  std::shared_ptr<const Editor> editor = {};  ///< what edits in place of the job's method; null: that itself
};

/// What edit() made.
struct EditedMethod {
  EditReport report;
  /// History of an edit() that records, on root: all edits, those of earlier jobs among them.
  std::optional<EditHistory> history = {};
  std::vector<WeightHash> weight_hashes = {};  ///< hashes of the weights with all edits, where there is a history
};

struct StreamParts;
struct StreamStart;

class MethodRun {
 public:
  /// Does what can fail before any weight is read; `job` and `inputs` outlive this.
  MethodRun(const JobConfig& job, EditInputs& inputs, Communicator& ranks, MethodOptions options = {});

  /// Root's: of the output that the job goes on from.
  std::span<const EditRequest> earlier_edits() const {
    return earlier_ ? std::span(earlier_->requests()) : std::span<const EditRequest>();
  }

  /// Collective, before the model is loaded: leaves out of work() what root's cache saves, text that is written or
  /// read.
  void look_into_cache();
  /// What memory is counted for.
  const Workload& work() const { return work_; }
  /// Counts the stages; what comes before and after the edit is counted there too.
  Stopwatch& stopwatch() { return stopwatch_; }

  /// Collective: contexts and statistics, of the unedited model, which outlives what is prepared.
  void prepare(const CausalLM& model);
  const std::shared_ptr<PreparedMethod>& prepared() const { return prepared_; }

  /// What an edit begins after, and where it keeps what it finished.
  struct Start {
    std::optional<std::filesystem::path> unfinished = {};  ///< folder that lasts until the job ends; nullopt: none
    std::optional<EditHistory> after = {};                 ///< edits whose changes the transaction has
    /// Root's: edits that are there, the first of `batches`.
    std::optional<EditHistory> done = {};
    std::optional<std::vector<std::vector<int64_t>>> batches = {};  ///< nullopt: by the job's schedule
    bool records = false;                                           ///< a history of the edits is kept
  };
  /// Collective: the edit and the measure after it; the transaction then holds the change. The report lacks what comes
  /// later: thresholds that were missed, and what stages cost.
  EditedMethod edit(CausalLM& model, WeightTransaction& transaction, Start start);

  /// Returns a context for solves alone, after prepare(). Outlives neither this nor the model.
  EditContext context(const CausalLM& model) const;

  /// How the weights are written, and so are measured.
  const OutputForm& form() const { return *form_; }

 private:
  EditReport described() const;
  StreamParts parts_of(CausalLM& model, WeightTransaction& transaction, const Start& start,
                       const std::vector<ChosenOption>& chosen) const;
  StreamStart first_start(const StreamParts& parts, Start& start) const;
  void judge(EditReport& report) const;
  bool has_moments() const { return prepared_->statistics && prepared_->statistics->has_moments(); }
  std::vector<EditRequest> earlier_requests() const;
  std::vector<EditRequest> standing_requests(const Start& start) const;
  RecordedSetting recorded_setting() const;
  std::string model_key() const;
  std::string setting_key(int64_t earlier_edits, WeightTransaction& transaction) const;

  const JobConfig& job_;
  const EditInputs& inputs_;
  Communicator& ranks_;
  Stopwatch stopwatch_;
  std::shared_ptr<const Editor> editor_;
  std::optional<EarlierOutput> earlier_;
  std::shared_ptr<PreparedMethod> prepared_;
  OutputOptions output_;
  std::unique_ptr<OutputForm> form_;
  Workload work_;
  MethodWork kind_;
};

}  // namespace lancet
