#include <algorithm>
#include <set>

#include "downdated.h"
#include "edit/given_edits.h"
#include "history_source.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/run/apply_job.h"

namespace lancet {
namespace {

/// Places of a batch's edits that go.
std::set<int64_t> places_in(const BatchEntry& batch, const std::set<std::string>& ids) {
  std::set<int64_t> places;
  for (size_t i = 0; i < batch.edits.size(); ++i)
    if (ids.contains(batch.edits[i].request.id)) places.insert(static_cast<int64_t>(i));
  return places;
}

class Undo {
 public:
  Undo(const Journal& journal, const std::vector<std::string>& ids, std::optional<UndoMode> mode)
      : journal_(journal), ids_(ids), gone_(ids.begin(), ids.end()) {
    const std::vector<BatchEntry>& batches = journal.batches();
    while (first_ < batches.size() && places_in(batches[first_], gone_).empty()) ++first_;
    bool is_tail = true;
    for (size_t i = first_; i < batches.size(); ++i)
      is_tail = is_tail && places_in(batches[i], gone_).size() == batches[i].edits.size();
    mode_ = mode.value_or(is_tail ? UndoMode::kLast : UndoMode::kDowndate);
    if (mode_ == UndoMode::kLast && !is_tail)
      throw ConfigError("--mode last: the edits are not all of the last batches: expected downdate or replay");
    if (is_tail && mode_ == UndoMode::kDowndate) mode_ = UndoMode::kLast;
  }

  UndoMode mode() const { return mode_; }
  /// The first batch that an edit leaves.
  size_t first() const { return first_; }
  UndoEntry entry() const { return {.when = utc_now(), .mode = mode_, .keeps = first_, .edits = ids_}; }

  /// Of each batch that an edit stays in, those that are to be edited again among them.
  std::vector<std::vector<EditRequest>> requests() const {
    std::vector<std::vector<EditRequest>> all;
    for (const BatchEntry& batch : journal_.batches()) {
      std::vector<EditRequest> stay;
      for (const EditRecord& edit : batch.edits)
        if (!gone_.contains(edit.request.id)) stay.push_back(edit.request);
      if (!stay.empty()) all.push_back(std::move(stay));
    }
    return all;
  }

 private:
  const Journal& journal_;
  std::vector<std::string> ids_;
  std::set<std::string> gone_;
  size_t first_ = 0;
  UndoMode mode_ = UndoMode::kLast;
};

/// As the journal has them, pooled as the report pools its own: each prompt counts once.
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

}  // namespace

MadeOutput run_undo_job(const UndoJob& job, Communicator& communicator) {
  std::optional<HistorySource> source;
  std::optional<Undo> undo;
  std::optional<JobConfig> config;
  GivenEdits given;
  const auto job_for = [&](size_t setting, std::span<const EditRequest> requests) {
    const bool in_place = job.out.empty();
    return source->job(setting, requests,
                       {in_place ? job.output : job.out, in_place ? IfExists::kReplace : job.if_exists}, job.overrides);
  };
  communicator.together("edits", [&] {
    source.emplace(job.output, job.model);
    const Journal& journal = source->journal();
    const std::vector<std::string> ids = chosen_edits(journal, job.selection);
    if (ids.empty()) throw ConfigError("no edit is chosen: nothing is to be taken back");
    if (ids.size() == requests_of(journal).size())
      throw ConfigError(cat("all edits are chosen: without them it is the unedited model, ", journal.base().folder));
    undo.emplace(journal, ids, job.mode);
    std::vector<EditRequest> requests;
    for (const std::vector<EditRequest>& batch : undo->requests()) {
      given.batches.emplace_back();
      for (const EditRequest& request : batch) {
        given.batches.back().push_back(static_cast<int64_t>(requests.size()));
        requests.push_back(request);
      }
    }
    const bool again = undo->mode() == UndoMode::kReplay;
    given.n_given = again ? undo->first() : given.batches.size();
    config = job_for(again ? one_setting(journal, undo->first()) : journal.batches().back().setting, requests);
  });
  UndoEntry entry = undo->entry();
  EditHistory history = source->history();
  if (undo->mode() == UndoMode::kDowndate)
    history = downdated(*source, entry, *config, communicator);
  else
    history.undo(entry);
  MadeOutput made{.folder = config->output->dir, .undone = entry};
  const Journal journal = source->journal();
  if (communicator.is_root()) given.history = std::move(history);
  made.report = run_edit_job(*config, communicator, std::move(given));
  made.measured_before = measured_before(journal, made.report);
  made.report_json = to_json(made.report, *config);
  return made;
}

}  // namespace lancet
