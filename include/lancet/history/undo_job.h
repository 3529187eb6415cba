// `lancet undo`: a model made of fewer of its edits.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/history/apply_job.h"
#include "lancet/spec/undo_spec.h"

namespace lancet {

/// Which edits; the first that is given.
struct EditSelection {
  std::vector<std::string> ids = {};
  std::vector<std::string> where = {};  ///< all hold: "specificity_prob.after < 0.5", "success == false"
  int64_t last_batches = *UndoSpec::kLast.fallback;
};

struct UndoJob {
  std::filesystem::path output = {};  ///< an output of `lancet edit`
  std::filesystem::path model = {};   ///< empty: where the edits' base lay
  std::filesystem::path out = {};     ///< empty: `output` itself is replaced, at once
  IfExists if_exists = IfExists::kError;
  EditSelection selection = {};
  std::optional<UndoMode> mode = {};  ///< nullopt: kLast where it is the last batches, else kDowndate
  std::vector<std::string> overrides = {};
};

/// A job with what a section of UndoSpec says, and nothing else.
UndoJob parse_undo_options(ConfigSection section);

/// Collective. Throws: as run_apply_job(); ConfigError for a selection of nothing, of everything, or of what the mode
/// cannot take out.
MadeOutput run_undo_job(const UndoJob& job, Communicator& communicator);

/// Returns the chosen ones of a journal's standing edits, in its order. Throws: ConfigError for ids that do not stand,
/// conditions that are none, and metrics that were not measured.
std::vector<std::string> chosen_edits(const Journal& journal, const EditSelection& selection);

}  // namespace lancet
