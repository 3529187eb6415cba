// The start of a stream of batches: after earlier edits, and after those of its own batches that are finished. Defined
// in earlier_output.cpp.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lancet/export/output_form.h"
#include "lancet/outcome/batch_report.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/edit_recorder.h"

namespace lancet {

/// What a stream works with. All of it must outlive the stream.
struct StreamParts {
  const JobConfig& job;
  const Editor& editor;
  const EditInputs& inputs;
  CausalLM& model;
  WeightTransaction& transaction;
  Communicator& ranks;
  OutputForm& form;
  std::vector<std::vector<int64_t>> batches;     ///< indices of the requests of each batch
  std::vector<EditRequest> earlier = {};         ///< requests that the continued jobs edited
  std::optional<RecordedSetting> recorded = {};  ///< nullopt: no history is kept
  std::vector<ChosenOption> chosen = {};         ///< `auto` options whose values were found before the first batch
};

/// The state of a stream before its next batch. after_batches() and after_interrupted() take a start and return the
/// start after the finished batches, so a stream cannot begin twice, or in another order.
struct StreamStart {
  EditorState state;  ///< the editor's state, which passes from batch to batch
  std::optional<EditHistory> history =
      {};  ///< on root: the history of all edits so far, if one is kept; nullopt: there are no edits
  std::vector<BatchReport> batches = {};  ///< reports of the first batches, which are finished
  int64_t n_interrupted = 0;              ///< how many of those an interrupted run edited
};

/// Begins on the unedited model.
StreamStart after_nothing(const StreamParts& parts);

/// Collective. Begins after the edits of another output, which root gives (the other ranks give none). The transaction
/// gets their changes.
StreamStart after_output(const StreamParts& parts, std::optional<EditHistory> earlier);

/// Begins after edits whose changes are already in the transaction. For one process.
StreamStart after_standing(const StreamParts& parts, EditHistory earlier);

/// Collective. Continues after the first batches, which `done` (on root) has; nullopt: none is finished.
StreamStart after_batches(const StreamParts& parts, StreamStart start, std::optional<EditProgress> done);

/// Collective. Continues after the batches that an interrupted run left in the store, which root has.
StreamStart after_interrupted(const StreamParts& parts, StreamStart start, ProgressStore* store);

}  // namespace lancet
