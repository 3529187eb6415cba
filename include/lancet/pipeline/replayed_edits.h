// A job whose edits are there as data, all of them or the first ones.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lancet/edit_history/edit_history.h"
#include "lancet/editing/editor.h"
#include "lancet/pipeline/edit_job.h"

namespace lancet {

struct ReplayedEdits {
  /// Root's: its batches are the first of `batches`. nullopt: none is there.
  std::optional<EditHistory> history = {};
  size_t n_replayed = 0;                           ///< batches of the history, on every rank
  std::vector<std::vector<int64_t>> batches = {};  ///< requests of the job, in order
  bool fits_any_base = false;                      ///< the changes are added to another base model than theirs, too

  bool has_all() const { return n_replayed == batches.size(); }
};

/// Collective: as run_edit_job(); `job.requests` are those of all batches. Throws: ConfigError also for edits of
/// another base model.
EditReport run_edit_job(const JobConfig& job, Communicator& communicator, ReplayedEdits given);

/// Collective: loads the job's model, makes what its method needs of statistics, and lets `use` solve with them.
/// Throws: as run_edit_job(); what `use` throws.
void with_statistics(const JobConfig& job, Communicator& communicator,
                     const std::function<void(const EditContext& context)>& use);

}  // namespace lancet
