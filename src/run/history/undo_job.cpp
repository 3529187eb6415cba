#include <algorithm>
#include <set>

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

/// What an undo leaves.
struct Undone {
  EditHistory history;                             ///< of the batches that are there
  std::vector<std::vector<EditRequest>> requests;  ///< of all batches, those to be edited again among them
  UndoEntry entry;
};

class Undo {
 public:
  Undo(const EditHistory& history, const std::vector<std::string>& ids, std::optional<UndoMode> mode)
      : history_(history), ids_(ids), gone_(ids.begin(), ids.end()) {
    const std::vector<BatchEntry>& batches = history.journal().batches();
    while (first_ < batches.size() && places_in(batches[first_], gone_).empty()) ++first_;
    bool is_tail = true;
    for (size_t i = first_; i < batches.size(); ++i)
      is_tail = is_tail && places_in(batches[i], gone_).size() == batches[i].edits.size();
    mode_ = mode.value_or(is_tail ? UndoMode::kLast : UndoMode::kDowndate);
    if (mode_ == UndoMode::kLast && !is_tail)
      throw ConfigError("--mode last: the edits are not all of the last batches: expected downdate or replay");
    if (is_tail && mode_ != UndoMode::kReplay) mode_ = UndoMode::kLast;
  }

  Undone run() const {
    Undone undone{history_, {}, {.when = utc_now(), .mode = mode_, .keeps = first_, .edits = ids_}};
    if (mode_ == UndoMode::kDowndate)
      downdate(undone);
    else
      undone.history.undo(undone.entry);
    add_requests(undone);
    return undone;
  }

  UndoMode mode() const { return mode_; }
  size_t first() const { return first_; }

 private:
  /// Batches without an edit that stays are left out.
  void add_requests(Undone& undone) const {
    for (const BatchEntry& batch : history_.journal().batches()) {
      std::vector<EditRequest> stay;
      for (const EditRecord& edit : batch.edits)
        if (!gone_.contains(edit.request.id)) stay.push_back(edit.request);
      if (!stay.empty()) undone.requests.push_back(std::move(stay));
    }
    if (mode_ != UndoMode::kReplay) undone.requests.resize(undone.history.batches().size());
  }

  void downdate(Undone& undone) const;

  const EditHistory& history_;
  std::vector<std::string> ids_;
  std::set<std::string> gone_;
  size_t first_ = 0;  ///< the first batch that an edit leaves
  UndoMode mode_ = UndoMode::kLast;
};

void Undo::downdate(Undone&) const { throw ConfigError("--mode downdate: not there yet; use --mode replay"); }

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
  std::optional<Undone> undone;
  std::optional<JobConfig> config;
  GivenEdits given;
  std::vector<EditRequest> requests;
  communicator.together("edits", [&] {
    source.emplace(job.output, job.model);
    const EditHistory& history = source->history();
    const Journal& journal = history.journal();
    const std::vector<std::string> ids = chosen_edits(journal, job.selection);
    if (ids.empty()) throw ConfigError("no edit is chosen: nothing is to be taken back");
    if (ids.size() == history.requests().size())
      throw ConfigError(cat("all edits are chosen: without them it is the unedited model, ", journal.base().folder));
    const Undo undo(history, ids, job.mode);
    undone = undo.run();
    int64_t next = 0;
    for (const std::vector<EditRequest>& batch : undone->requests) {
      given.batches.emplace_back();
      for (const EditRequest& request : batch) {
        requests.push_back(request);
        given.batches.back().push_back(next++);
      }
    }
    given.n_given = undone->history.batches().size();
    const size_t setting =
        undo.mode() == UndoMode::kReplay ? one_setting(journal, undo.first()) : journal.batches().back().setting;
    const bool in_place = job.out.empty();
    config =
        source->job(setting, requests, {in_place ? job.output : job.out, in_place ? IfExists::kReplace : job.if_exists},
                    job.overrides);
  });
  MadeOutput made{.folder = config->output->dir, .undone = undone->entry};
  if (communicator.is_root()) given.history = std::move(undone->history);
  const Journal journal = source->history().journal();
  made.report = run_edit_job(*config, communicator, std::move(given));
  made.measured_before = measured_before(journal, made.report);
  made.report_json = to_json(made.report, *config);
  return made;
}

}  // namespace lancet
