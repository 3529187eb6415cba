#include "lancet/history/apply_job.h"

#include "history_source.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/edit_history/rebased.h"
#include "lancet/pipeline/replayed_edits.h"

namespace lancet {
namespace {

/// Returns nothing if the base models have different shapes, because their keys cannot be compared.
std::vector<RebasedEdit> compare_with(HistorySource& source, const JobConfig& job) {
  if (!job.output->keeps_state) return {};
  const EditHistory there = EditHistory::load(job.output->place.folder / kEditsFolder, source.files().config);
  try {
    return compare_edits(source.history(), there);
  } catch (const CheckpointError&) {
    return {};
  }
}

}  // namespace

MadeOutput run_apply_job(const ApplyJob& job, Communicator& communicator) {
  const bool again = job.other_base == OtherBase::kRebase;
  std::optional<HistorySource> source;
  std::optional<ResolvedJob> config;
  ReplayedEdits given{.fits_any_base = job.other_base == OtherBase::kAdd};
  communicator.run_collectively("edits", [&] {
    source.emplace(job.edits, job.model);
    const Journal& journal = source->journal();
    Numbered edits = numbered(journal);
    config = source->job(again ? one_setting(journal, 0) : journal.batches().back().setting, edits.requests,
                         {job.out, job.if_exists, AdapterOutputs::kBecomeModels}, job.overrides);
    given.batches = std::move(edits.batches);
    if (again) return;
    given.n_replayed = given.batches.size();
    if (communicator.is_root()) given.history = source->history();
  });
  MadeOutput made = make_output(*config, communicator, std::move(given));
  if (again && communicator.is_root()) made.rebased = compare_with(*source, *config);
  return made;
}

}  // namespace lancet
