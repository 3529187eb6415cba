// Where a stream of batches begins: after the edits that stand, and after those of its own batches that are done.
// Defined in earlier_output.cpp.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lancet/export/output_form.h"
#include "lancet/outcome/batch_report.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/edit_recorder.h"

namespace lancet {

/// What a stream works with and for; all of it outlives the stream.
struct StreamParts {
  const JobConfig& job;
  const Editor& editor;
  const EditInputs& inputs;
  CausalLM& model;
  WeightTransaction& transaction;
  Communicator& ranks;
  OutputForm& form;
  std::vector<std::vector<int64_t>> batches;     ///< requests of each
  std::vector<EditRequest> earlier = {};         ///< edited by the jobs that this one goes on from
  std::optional<RecordedSetting> recorded = {};  ///< nullopt: no history is kept
  std::vector<ChosenOption> chosen = {};         ///< options that are `auto` and were found before the first batch
};

/// The place of a stream before its next batch. after_batches() and after_interrupted() take such a start and give the
/// one after what is done, so a stream cannot begin twice, or in another order.
struct StreamStart {
  EditorState state;                        ///< what the editor carries from batch to batch
  std::optional<EditHistory> history = {};  ///< root's, where one is kept: of all edits so far; nullopt: there are none
  std::vector<BatchReport> batches = {};    ///< reports of the job's first batches, which are done
  int64_t n_interrupted = 0;                ///< the last of them, which an interrupted run left
};

/// Begins on the unedited model.
StreamStart after_nothing(const StreamParts& parts);

/// Collective: begins after the edits of another output, root's, whose changes the transaction gets; the other ranks
/// give none.
StreamStart after_output(const StreamParts& parts, std::optional<EditHistory> earlier);

/// Begins after edits whose changes the transaction has; of one process.
StreamStart after_standing(const StreamParts& parts, EditHistory earlier);

/// Collective: goes on after the first batches as they are in `done`, root's. Nothing: none are done.
StreamStart after_batches(const StreamParts& parts, StreamStart start, std::optional<EditProgress> done);

/// Collective: goes on after the batches that an interrupted run left in the store, which root has.
StreamStart after_interrupted(const StreamParts& parts, StreamStart start, ProgressStore* store);

}  // namespace lancet
