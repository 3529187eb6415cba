#include "lancet/history/undo_job.h"

#include <algorithm>
#include <utility>

#include "history_source.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/history/apply_job.h"
#include "lancet/history/downdated.h"
#include "lancet/history/edits_taken.h"
#include "lancet/io/model_file_output.h"
#include "lancet/pipeline/replayed_edits.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

/// Returns the measures in the journal, averaged as the report averages its own: each prompt counts once.
std::map<std::string, double> measured_before(const Journal& journal, const EditReport& report) {
  Tallies pooled;
  for (size_t i = 0; i < report.requests.size(); ++i) {
    const auto measured = journal.measured().find(report.requests[i].id);
    if (measured == journal.measured().end()) continue;
    for (const auto& [name, now] : report.after.requests[i]) {
      const auto before = measured->second.after.find(name);
      if (before == measured->second.after.end()) continue;
      pooled[name].sum += before->second * static_cast<double>(now.count);
      pooled[name].count += now.count;
    }
  }
  std::map<std::string, double> means;
  for (const auto& [name, tally] : pooled)
    if (const std::optional<double> mean = tally.mean()) means[name] = *mean;
  return means;
}

/// The requests of the journal that have these ids, in the journal's order.
std::vector<EditRequest> requests_of(const Journal& journal, const std::vector<std::string>& ids) {
  std::vector<EditRequest> chosen;
  for (EditRequest& request : journal.requests())
    if (std::ranges::find(ids, request.id) != ids.end()) chosen.push_back(std::move(request));
  return chosen;
}

}  // namespace

UndoJob parse_undo_options(ConfigSection section) {
  const size_t mode = read_index(section, UndoSpec::kMode);
  UndoJob job{.selection = {.last_batches = read(section, UndoSpec::kLast)},
              // the first name is `auto`, which is no mode
              .mode = find_undo_mode(std::string(UndoSpec::kModeNames[mode]))};
  section.finish();
  return job;
}

MadeOutput run_undo_job(const UndoJob& job, Communicator& communicator) {
  std::optional<HistorySource> source;
  std::optional<EditsTaken> undo;
  std::optional<ResolvedJob> config;
  ReplayedEdits given;
  const auto job_for = [&](size_t setting, std::span<const EditRequest> requests) {
    if (!job.out.empty()) return source->job(setting, requests, {job.out, job.if_exists}, job.overrides);
    if (!source->output())
      throw ConfigError(cat(job.output.string(),
                            ": is a folder of edits alone, without the model that has them: --out ",
                            "says where the model with fewer of them shall go"));
    return source->job(setting, requests, {existing_output(*source->output()).named(), IfExists::kReplace},
                       job.overrides);
  };
  communicator.run_collectively("edits", [&] {
    source.emplace(job.output, job.model);
    const Journal& journal = source->journal();
    const std::vector<std::string> ids = chosen_edits(journal, job.selection);
    if (ids.empty()) throw ConfigError("no edit is chosen: nothing is to be taken back");
    if (ids.size() == journal.requests().size())
      throw ConfigError(cat("all edits are chosen, and without them it is the unedited model, ", journal.base().folder,
                            ": take that model, or choose some of the edits: --edits ID (lancet log shows the ids)"));
    undo.emplace(journal, ids, job.mode);
    Numbered edits = numbered(undo->requests());
    given.batches = std::move(edits.batches);
    const bool again = undo->mode() == UndoMode::kReplay;
    given.n_replayed = again ? undo->first() : given.batches.size();
    config = job_for(again ? one_setting(journal, undo->first()) : journal.batches().back().setting, edits.requests);
  });
  UndoEntry entry = undo->entry();
  EditHistory history = source->history();
  if (undo->mode() == UndoMode::kReplay && undo->first() > 0 && !history.has_solved())
    throw ConfigError(cat(job.output.string(), ": its edits/ has no folder solved/ (output.state: false), which edits ",
                          "that are made again after others go on from: take back edits of the first batch too, or ",
                          "run the job again without these edits"));
  if (undo->mode() == UndoMode::kDowndate)
    history = downdated(*source, entry, *config, communicator);
  else
    history.undo(entry);
  if (communicator.is_root()) given.history = std::move(history);
  MadeOutput made = make_output(*config, communicator, std::move(given));
  made.undone = entry;
  made.taken_back = requests_of(source->journal(), entry.edits);
  made.measured_before = measured_before(source->journal(), made.report);
  return made;
}

}  // namespace lancet
