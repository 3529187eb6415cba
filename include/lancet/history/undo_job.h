// `lancet undo`: removes some of a model's edits.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/history/apply_job.h"
#include "lancet/spec/undo_spec.h"

namespace lancet {

/// Selects edits by the first of these that is given.
struct EditSelection {
  std::vector<std::string> ids = {};
  /// Conditions that must all hold: "specificity_prob.after < 0.5", "success == false".
  std::vector<std::string> where = {};
  int64_t last_batches = *UndoSpec::kLast.fallback;
};

struct UndoJob {
  std::filesystem::path output = {};  ///< an output of `lancet edit`
  std::filesystem::path model = {};   ///< empty: where the edits' base was
  std::filesystem::path out = {};     ///< empty: `output` itself is replaced, in one step
  IfExists if_exists = IfExists::kError;
  EditSelection selection = {};
  std::optional<UndoMode> mode = {};  ///< nullopt: kLast if the last batches are selected, else kDowndate
  std::vector<std::string> overrides = {};
};

/// Returns a job with the options of a section of UndoSpec; its other fields are not set.
UndoJob parse_undo_options(ConfigSection section);

/// Collective. Throws: as run_apply_job(); ConfigError for a selection of nothing, of everything, or of edits that the
/// mode cannot remove.
MadeOutput run_undo_job(const UndoJob& job, Communicator& communicator);

/// Returns the selected ids among a journal's standing edits, in its order. Throws: ConfigError for ids that are not
/// among them, for invalid conditions, and for metrics that were not measured.
std::vector<std::string> chosen_edits(const Journal& journal, const EditSelection& selection);

}  // namespace lancet
