// A history without some of its edits, by what is stored of it.
#pragma once

#include <functional>

#include "lancet/edit_history/downdate.h"
#include "lancet/editing/editor.h"
#include "lancet/job/job_config.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

class HistorySource;

/// `history` without the edits of these ids. `entry`, whose ids they are, is added to it, with what is given up.
/// `solve`: DowndateHelp's. Throws: as without_edits().
EditHistory without(const EditHistory& history, UndoEntry& entry, const ModelConfig& config,
                    const std::function<Tensor(const SolveAgain&)>& solve);

/// DowndateHelp::solve by the method itself. `state`: after the history's last batch.
Tensor solve_without(const SolveAgain& problem, const Editor& editor, const EditContext& context, EditorState& state);

/// Collective: the same of `source`'s. Statistics are made, and the model of `job` is loaded for them, where later
/// batches were solved with the keys of these edits as their history. Throws: also as with_statistics().
EditHistory downdated(HistorySource& source, UndoEntry& entry, const JobConfig& job, Communicator& communicator);

}  // namespace lancet
