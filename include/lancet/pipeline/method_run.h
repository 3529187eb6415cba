// Edits a job's requests with one method, from the statistics to the measure after the edit. It writes no output.
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

/// What several edits of one model with one method share. It is made from the unedited model, for the first edit.
struct PreparedMethod {
  std::vector<std::string> contexts;
  std::optional<JobStatistics> statistics;
  bool is_ready = false;
};

enum class MethodWork {
  kEdits,
  kSolves,   ///< keys and residuals are given, so no contexts are needed
  kRestores  ///< all edits are given, so no contexts and no statistics are needed
};

struct MethodOptions {
  std::shared_ptr<PreparedMethod> prepared = {};  ///< from an earlier run of the same job and model; null: none
  /// The resolved output options; nullopt: nothing is written, and edited weights are rounded to full precision.
  std::optional<OutputOptions> output = {};
  MethodWork work = MethodWork::kEdits;
};

/// The result of edit().
struct EditedMethod {
  EditReport report;
  /// The history, on root, if edit() records: all edits, including those of earlier jobs.
  std::optional<EditHistory> history = {};
  std::vector<WeightHash> weight_hashes = {};  ///< hashes of the weights with all edits, if there is a history
};

struct StreamParts;
struct StreamStart;

class MethodRun {
 public:
  /// Does everything that can fail before any weight is read. `job` and `inputs` must outlive this.
  MethodRun(const ResolvedJob& job, EditInputs& inputs, Communicator& ranks, MethodOptions options = {});

  /// Returns the edits of the output that the job continues from. On root.
  std::span<const EditRequest> earlier_edits() const {
    return earlier_ ? std::span(earlier_->requests()) : std::span<const EditRequest>();
  }

  /// Collective. Removes from work() the writing or reading of text that root's cache makes unnecessary. Call it before
  /// the model is loaded.
  void look_into_cache();
  /// Returns the work for which memory is counted.
  const Workload& work() const { return work_; }
  /// Returns the stopwatch of all stages; it also counts the stages before and after the edit.
  Stopwatch& stopwatch() { return stopwatch_; }

  /// Collective. Makes contexts and statistics from the unedited model, which must outlive what is prepared.
  void prepare(const CausalLM& model);
  const std::shared_ptr<PreparedMethod>& prepared() const { return prepared_; }

  /// The state from which an edit starts, and where it saves finished work.
  struct Start {
    std::optional<std::filesystem::path> unfinished = {};  ///< folder that exists until the job ends; nullopt: none
    std::optional<EditHistory> after = {};                 ///< edits whose changes are already in the transaction
    /// Edits that are already done: the first of `batches`. On root.
    std::optional<EditHistory> done = {};
    std::optional<std::vector<std::vector<int64_t>>> batches = {};  ///< nullopt: batches follow the job's schedule
    bool records = false;                                           ///< whether to keep a history of the edits
  };
  /// Collective. Edits and then measures; afterwards the transaction holds the change. The report lacks what is known
  /// only later: missed thresholds and the costs of the stages.
  EditedMethod edit(CausalLM& model, WeightTransaction& transaction, Start start);

  /// Returns a context for solves only. Call it after prepare(). The context must not outlive this or the model.
  EditContext context(const CausalLM& model) const;

  /// Returns the form in which the weights are written and therefore measured.
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

  const ResolvedJob& job_;
  const EditInputs& inputs_;
  Communicator& ranks_;
  Stopwatch stopwatch_;
  std::optional<EarlierOutput> earlier_;
  std::shared_ptr<PreparedMethod> prepared_;
  OutputOptions output_;
  std::unique_ptr<OutputForm> form_;
  Workload work_;
  MethodWork kind_;
};

}  // namespace lancet
