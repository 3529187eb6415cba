#include "lancet/run/apply_job.h"

#include "edit/given_edits.h"
#include "history_source.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/edits/rebased.h"

namespace lancet {
MadeOutput run_apply_job(const ApplyJob& job, Communicator& communicator) {
  std::optional<HistorySource> source;
  std::optional<JobConfig> config;
  communicator.together("edits", [&] {
    source.emplace(job.edits, job.model);
    const Journal& journal = source->history().journal();
    const bool again = job.other_base == OtherBase::kRebase;
    config = source->job(again ? one_setting(journal, 0) : journal.batches().back().setting,
                         source->history().requests(), {job.out, job.if_exists}, job.overrides);
  });
  const EditHistory& history = source->history();
  GivenEdits given{.batches = batches_of(history.journal()), .fits_any_base = job.other_base == OtherBase::kAdd};
  if (job.other_base != OtherBase::kRebase) {
    given.n_given = given.batches.size();
    if (communicator.is_root()) given.history = history;
  }
  MadeOutput made{.report = run_edit_job(*config, communicator, std::move(given)), .folder = job.out};
  if (communicator.is_root() && job.other_base == OtherBase::kRebase && config->output->keeps_state)
    made.rebased = compare_edits(history, EditHistory::load(job.out / kEditsFolder, source->files().config));
  made.report_json = to_json(made.report, *config);
  return made;
}

}  // namespace lancet
