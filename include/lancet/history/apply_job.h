// `lancet apply`: applies stored edits to a model.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lancet/edit_history/rebased.h"
#include "lancet/io/model_file_output.h"
#include "lancet/io/output_folder.h"
#include "lancet/journal/journal.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// How edits are applied to a base model other than their own.
enum class OtherBase {
  kRefuse,
  kAdd,    ///< adds the stored changes, whatever their effect there
  kRebase  ///< edits the requests again there: keys and values are found anew
};

struct ApplyJob {
  std::filesystem::path edits = {};  ///< an output of `lancet edit`, or its folder edits/
  std::filesystem::path model = {};  ///< empty: where the edits' base was
  std::filesystem::path out = {};
  IfExists if_exists = IfExists::kError;
  std::vector<std::string> overrides = {};  ///< changes to the job that made the edits: "run.dtype=f32"
  OtherBase other_base = OtherBase::kRefuse;
};

/// The result of one of these jobs.
struct MadeOutput {
  EditReport report = {};
  OutputPlace place = {};
  std::string report_json = {};                        ///< text of report.json
  std::vector<RebasedEdit> rebased = {};               ///< one for each edit, if keys were kept
  std::optional<UndoEntry> undone = {};                ///< the journal's entry of an undo
  std::vector<EditRequest> taken_back = {};            ///< the edits that an undo removed
  std::map<std::string, double> measured_before = {};  ///< latest measured means over the edits that stay
};

/// Collective. Throws: as run_edit_job(); by OtherBase::kRefuse, ConfigError for edits of another base.
MadeOutput run_apply_job(const ApplyJob& job, Communicator& communicator);

}  // namespace lancet
