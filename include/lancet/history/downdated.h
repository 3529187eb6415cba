// Removes edits from a history by the data that is stored of it.
#pragma once

#include <functional>

#include "lancet/edit_history/downdate.h"
#include "lancet/editing/editor.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

class HistorySource;

/// Returns `history` without the edits of `entry`. Adds `entry` to it, and says in `entry` how the result is
/// approximate. `solve`: as DowndateHelp::solve. Throws: as without_edits().
EditHistory without(const EditHistory& history, UndoEntry& entry, const ModelConfig& config,
                    const std::function<Tensor(const SolveAgain&)>& solve);

/// Implements DowndateHelp::solve with the method itself. `state`: the state after the history's last batch.
Tensor solve_without(const SolveAgain& problem, const Editor& editor, const EditContext& context, EditorState& state);

/// Collective. Does the same for the history of `source`. If later batches were solved with the keys of these edits as
/// their history, loads the model of `job` and makes the statistics. Throws: also as with_statistics().
EditHistory downdated(HistorySource& source, UndoEntry& entry, const ResolvedJob& job, Communicator& communicator);

}  // namespace lancet
