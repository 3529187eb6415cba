// `lancet apply` and `lancet undo`: models made of edits that are data, and of fewer of them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/edits/rebased.h"
#include "lancet/io/output_folder.h"
#include "lancet/journal/journal.h"
#include "lancet/run/edit_job.h"

namespace lancet {

/// What becomes of edits on another base model than theirs.
enum class OtherBase {
  kRefuse,
  kAdd,    ///< the stored changes are added to it, whatever they do there
  kRebase  ///< the same requests are edited there: keys and values are found again
};

struct ApplyJob {
  std::filesystem::path edits = {};  ///< an output of `lancet edit`, or its folder edits/
  std::filesystem::path model = {};  ///< empty: where the edits' base lay
  std::filesystem::path out = {};
  IfExists if_exists = IfExists::kError;
  std::vector<std::string> overrides = {};  ///< of the job that the edits were made by: "run.dtype=f32"
  OtherBase other_base = OtherBase::kRefuse;
};

/// What one of these jobs made.
struct MadeOutput {
  EditReport report = {};
  std::filesystem::path folder = {};
  std::string report_json = {};                        ///< report.json
  std::vector<RebasedEdit> rebased = {};               ///< where keys were kept, by edit
  std::optional<UndoEntry> undone = {};                ///< by an undo
  std::map<std::string, double> measured_before = {};  ///< means over the edits that stay, as they were measured last
};

/// Collective. Throws: as run_edit_job(); ConfigError for edits of another base by OtherBase::kRefuse.
MadeOutput run_apply_job(const ApplyJob& job, Communicator& communicator);

/// Whether a folder is an adapter of PEFT, with no model and no edits of lancet's beside it.
bool is_foreign_adapter(const std::filesystem::path& folder);

/// What an adapter did to a weight.
struct AdaptedWeight {
  std::string name = {};
  double norm = 0;     ///< Frobenius norm of the change
  double growth = 0;   ///< the same by the weight's norm; 0 for a weight of zeros
  int64_t rank = 0;    ///< of its factors; the smaller side where it is dense
  double rounded = 0;  ///< ||stored - exact|| / ||change||
};

struct AppliedAdapter {
  std::vector<AdaptedWeight> weights = {};
  std::filesystem::path model = {};
  std::string format = {};  ///< "checkpoint", or "mixed" where weights were quantised
};

/// `lancet apply` of an adapter that other programs made, or `lancet diff --out`: the model with its change added, and
/// apply.json. `job.edits`: the adapter; `job.model`: empty: what its adapter_config.json names. Nothing is measured:
/// there are no requests. Weights are added to one by one, in f64. The folder appears complete or not at all. Throws:
/// ConfigError, also for overrides, which have no meaning here; CheckpointError; as read_adapter().
AppliedAdapter apply_adapter(const ApplyJob& job);

/// apply.json.
std::string to_json(const AppliedAdapter& applied, const ApplyJob& job);

/// Which edits; the first that is given.
struct EditSelection {
  std::vector<std::string> ids = {};
  std::vector<std::string> where = {};  ///< all hold: "specificity_prob.after < 0.5", "took == false"
  int64_t last_batches = 1;
};

struct UndoJob {
  std::filesystem::path output = {};  ///< of `lancet edit`
  std::filesystem::path model = {};   ///< empty: where the edits' base lay
  std::filesystem::path out = {};     ///< empty: `output` itself is replaced, at once
  IfExists if_exists = IfExists::kError;
  EditSelection selection = {};
  std::optional<UndoMode> mode = {};  ///< nullopt: kLast where it is the last batches, else kDowndate
  std::vector<std::string> overrides = {};
};

/// Collective. Throws: as run_apply_job(); ConfigError for a selection of nothing, of everything, or of what the mode
/// cannot take out.
MadeOutput run_undo_job(const UndoJob& job, Communicator& communicator);

/// Of a journal's standing edits the chosen ones, in its order. Throws: ConfigError for ids that do not stand,
/// conditions that are none, and metrics that were not measured.
std::vector<std::string> chosen_edits(const Journal& journal, const EditSelection& selection);

}  // namespace lancet
