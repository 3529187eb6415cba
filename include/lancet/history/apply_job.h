// `lancet apply`: a model made of edits that are data.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lancet/edit_history/rebased.h"
#include "lancet/io/output_folder.h"
#include "lancet/journal/journal.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// What becomes of edits on another base model than theirs.
enum class OtherBase {
  kRefuse,
  kAdd,    ///< the stored changes are added to it, whatever they do there
  kRebase  ///< their requests are edited there: keys and values are found again
};

struct ApplyJob {
  std::filesystem::path edits = {};  ///< an output of `lancet edit`, or its folder edits/
  std::filesystem::path model = {};  ///< empty: where the edits' base lay
  std::filesystem::path out = {};
  IfExists if_exists = IfExists::kError;
  std::vector<std::string> overrides = {};  ///< changes to the job that the edits were made by: "run.dtype=f32"
  OtherBase other_base = OtherBase::kRefuse;
};

/// What one of these jobs made.
struct MadeOutput {
  EditReport report = {};
  std::filesystem::path folder = {};
  std::string report_json = {};                        ///< report.json
  std::vector<RebasedEdit> rebased = {};               ///< one for each edit, where keys were kept
  std::optional<UndoEntry> undone = {};                ///< entry of an undo
  std::map<std::string, double> measured_before = {};  ///< means over the edits that stay, as they were measured last
};

/// Collective. Throws: as run_edit_job(); ConfigError for edits of another base by OtherBase::kRefuse.
MadeOutput run_apply_job(const ApplyJob& job, Communicator& communicator);

}  // namespace lancet
