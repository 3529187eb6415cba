// `lancet merge`: merges the edits of several outputs of one base model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/edit_history/conflicts.h"
#include "lancet/edit_history/merge.h"
#include "lancet/history/apply_job.h"

namespace lancet {

struct MergeJob {
  std::vector<std::filesystem::path> edits = {};  ///< outputs of `lancet edit`, two or more
  std::filesystem::path model = {};               ///< empty: where the first output's base was
  std::filesystem::path out = {};
  IfExists if_exists = IfExists::kError;
  std::optional<size_t> prefer = {};   ///< index in `edits` of the output that wins conflicts; nullopt: refuses them
  std::vector<std::string> drop = {};  ///< ids of edits to leave out
  bool solves = false;                 ///< whether all edits are solved jointly; else changes are added
  std::vector<std::string> overrides = {};
};

struct MergedOutput {
  MadeOutput made = {};
  ConflictReport conflicts = {};                ///< all conflicts found
  std::vector<std::string> dropped = {};        ///< ids that were left out
  std::vector<Interference> interference = {};  ///< interference between the parts, if they were added
  std::string approximation = {};               ///< how it differs from each of the parts; empty: not at all
};

/// Returns "a (out/a), b (out/b): targets: ...".
std::string conflict_line(const Conflict& conflict, const std::vector<std::filesystem::path>& edits);

/// Collective. Edits with the same fact and target are taken once, from the first output. Throws: as run_apply_job();
/// ConfigError that lists unresolved conflicts. `solves` resolves near keys; `prefer` and `drop` resolve all kinds.
MergedOutput run_merge_job(const MergeJob& job, Communicator& communicator);

}  // namespace lancet
