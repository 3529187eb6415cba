// `lancet merge`: the edits of several outputs of one base model in one.
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
  std::filesystem::path model = {};               ///< empty: where the first one's base lay
  std::filesystem::path out = {};
  IfExists if_exists = IfExists::kError;
  std::optional<size_t> prefer =
      {};  ///< place in `edits`: whose edits stay where two are at odds; else conflicts are refused
  std::vector<std::string> drop = {};  ///< ids of edits that stay out
  bool solves = false;                 ///< one joint solve; else changes are added
  std::vector<std::string> overrides = {};
};

struct MergedOutput {
  MadeOutput made = {};
  ConflictReport conflicts = {};                ///< all conflicts that were found
  std::vector<std::string> dropped = {};        ///< ids that stayed out
  std::vector<Interference> interference = {};  ///< interference between the parts, where they were added
  std::string approximation = {};               ///< ways in which it is not each of the parts; empty: none
};

/// "a (out/a), b (out/b): targets: ...".
std::string conflict_line(const Conflict& conflict, const std::vector<std::filesystem::path>& edits);

/// Collective. Edits that say the same of the same fact are taken once, from the first. Throws: as run_apply_job();
/// ConfigError that lists conflicts that are not resolved: near keys are by `solves`, all kinds by `prefer` and `drop`.
MergedOutput run_merge_job(const MergeJob& job, Communicator& communicator);

}  // namespace lancet
