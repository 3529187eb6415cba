// A job whose edits, all or the first ones, are given as data.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/editing/editor.h"
#include "lancet/pipeline/edit_job.h"

namespace lancet {

struct ReplayedEdits {
  /// On root: the given edits, which are the first of `batches`. nullopt: none.
  std::optional<EditHistory> history = {};
  size_t n_replayed = 0;                           ///< number of batches in the history, on every rank
  std::vector<std::vector<int64_t>> batches = {};  ///< requests of the job by batch, in order
  bool fits_any_base = false;  ///< the changes may also be added to another base model than the one they were made on

  bool has_all() const { return n_replayed == batches.size(); }
};

/// Collective. Runs the job as run_edit_job() does, with the given edits. `job.requests` are the requests of all
/// batches. Throws: as run_edit_job(), and ConfigError for edits of another base model.
EditReport run_edit_job(const ResolvedJob& job, Communicator& communicator, ReplayedEdits given);

/// Collective. Loads the job's model, prepares the statistics that its method needs, and lets `use` solve with them.
/// Throws: as run_edit_job(); what `use` throws.
void with_statistics(const ResolvedJob& job, Communicator& communicator,
                     const std::function<void(const EditContext& context)>& use);

}  // namespace lancet
