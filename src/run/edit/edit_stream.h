// The batches of one edit, one after another, with what is measured and kept between them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "edit_progress.h"
#include "edit_recorder.h"
#include "edit_session.h"
#include "lancet/run/edit_job.h"
#include "output/output_form.h"
#include "stopwatch.h"

namespace lancet {

/// What a stream works with and for; all of it outlives the stream.
struct StreamParts {
  const JobConfig& job;
  const EditSession& session;
  CausalLM& model;
  WeightTransaction& transaction;
  Communicator& ranks;
  OutputForm& form;
  std::vector<EditRequest> earlier = {};         ///< edited by the jobs that this one goes on from
  std::optional<RecordedSetting> recorded = {};  ///< nullopt: no history is kept
  /// Requests of each batch; nullopt: by the job's schedule.
  std::optional<std::vector<std::vector<int64_t>>> batches = {};
};

class EditStream {
 public:
  EditStream(const StreamParts& parts, EditReport& report, Stopwatch& stopwatch);

  /// Collective: goes on behind `earlier`, root's; the others give none.
  void begin_behind(std::optional<EditHistory> earlier);
  /// The same where the transaction has the earlier changes already; of one process.
  void go_on_with(EditHistory earlier);
  /// Collective: takes the first batches, with those before this job's, from `done`, root's. Nothing: none are.
  void resume(std::optional<EditProgress> done);

  /// Collective: from now on every finished batch is kept in `store`, which root has; goes on behind those that an
  /// interrupted run left there.
  void keep_in(ProgressStore* store);

  /// For the editor's context.
  std::vector<SolvedSystem>* systems() { return recorder_ ? &recorder_->systems() : nullptr; }

  /// Collective: the batches that are left, and what the method does behind the last. The model then has the weights
  /// rounded as they are stored.
  void run(const EditContext& context);

  /// Takes the last batch's metrics from the report's, which are of all requests.
  void note_after();

  const EditorState& state() const { return state_; }
  /// How well the report's requests hold.
  void note_measured();
  /// Behind that, on root, where one is kept; once.
  std::optional<EditHistory> take_history() {
    return recorder_ ? std::optional(recorder_->take_history()) : std::nullopt;
  }
  /// Of the weights without what the method does behind the last batch.
  const std::vector<WeightHash>& weight_hashes() const { return weight_hashes_; }

 private:
  void edit_batch(const EditContext& context, const std::vector<int64_t>& batch);
  void measure(const EditContext& context);
  std::vector<RoundingLoss> write(const EditContext& context);
  void save();
  void show(const BatchReport& batch) const;
  void show_chosen(const EditOutcome& first) const;

  const StreamParts parts_;
  EditReport& report_;
  Stopwatch& stopwatch_;
  std::vector<std::vector<int64_t>> batches_;
  EditorState state_;
  std::vector<WeightHash> weight_hashes_;
  std::optional<EditRecorder> recorder_;  ///< root's, where a history is kept
  ProgressStore* store_ = nullptr;
  int64_t n_kept_ = 0;  ///< batches that an interrupted run left, behind those that were given
};

}  // namespace lancet
