#include "edit_stream.h"

#include <chrono>
#include <cstdio>

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/runtime/collectives.h"

namespace lancet {
namespace {

/// The tallies of some requests together; `all`: by request.
Tallies pooled_of(const std::vector<Tallies>& all, std::span<const int64_t> requests) {
  std::vector<Tallies> some;
  for (const int64_t index : requests) some.push_back(all[static_cast<size_t>(index)]);
  return pooled(some);
}

/// A line for each option: "covariance_weight: auto: 328.9 (layer 0), 415.3 (layer 1)".
std::vector<std::string> chosen_lines(std::span<const ChosenOption> chosen) {
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  for (const ChosenOption& each : chosen) {
    if (options.empty() || options.back().first != each.option) options.push_back({each.option, {}});
    char value[32];
    std::snprintf(value, sizeof(value), "%.4g", each.value);
    options.back().second.push_back(cat(value, " (layer ", each.layer, ")"));
  }
  std::vector<std::string> lines;
  for (const auto& [option, values] : options) lines.push_back(cat(option, ": auto: ", join(values)));
  return lines;
}

/// The first metrics that there are: what fits a line.
std::string shares_text(std::span<const MetricRow> metrics, const Tallies& tallies) {
  constexpr size_t kShown = 2;
  std::vector<std::string> parts;
  for (const MetricRow& row : metrics)
    if (const auto tally = tallies.find(row.name); tally != tallies.end() && tally->second.mean())
      if (parts.size() < kShown && row.unit == Unit::kShare)
        parts.push_back(cat(row.name, " ", percent(*tally->second.mean())));
  return join(parts);
}

}  // namespace

EditStream::EditStream(const StreamParts& parts, EditReport& report, Stopwatch& stopwatch)
    : parts_(parts),
      report_(report),
      stopwatch_(stopwatch),
      batches_(parts.batches ? *parts.batches
                             : plan_schedule(parts.job.schedule, static_cast<int64_t>(parts.session.requests.size()),
                                             parts.job.run.seed)),
      state_(parts.job.editor->make_state()) {
  if (parts.recorded && parts.ranks.is_root())
    recorder_.emplace(parts.session.files, *parts.job.editor, *parts.recorded);
}

void EditStream::begin_behind(std::optional<EditHistory> earlier) {
  StreamState stream;
  parts_.ranks.together("progress", [&] {
    if (!earlier) return;
    stream = {earlier->state(parts_.job.editor->make_state()), earlier->changes(), {}};
    if (recorder_) recorder_->go_on_from(std::move(*earlier));
  });
  share_stream(stream, parts_.session.files.config, parts_.ranks);
  state_ = std::move(stream.editor);
  parts_.transaction.rollback();
  restore_changes(stream.changes, parts_.model, parts_.transaction);
}

void EditStream::go_on_with(EditHistory earlier) {
  state_ = earlier.state(parts_.job.editor->make_state());
  if (recorder_) recorder_->go_on_from(std::move(earlier));
}

void EditStream::resume(std::optional<EditProgress> done) {
  std::vector<std::string> records;
  if (done)
    for (const BatchReport& batch : done->batches) records.push_back(to_record(batch));
  records = broadcast_texts(parts_.ranks, records);
  if (records.empty()) {
    if (done && recorder_) recorder_->go_on_from(std::move(done->history));
    return;
  }
  report_.batches.clear();
  for (size_t i = 0; i < records.size(); ++i) {
    report_.batches.push_back(from_record(records[i], batches_[i].size()));
    report_.batches.back().requests = batches_[i];
  }
  report_.resumed_batches = static_cast<int64_t>(records.size());
  begin_behind(done ? std::optional(std::move(done->history)) : std::nullopt);
}

void EditStream::keep_in(ProgressStore* store) {
  std::optional<EditProgress> progress;
  parts_.ranks.together("progress", [&] {
    if (store != nullptr) progress = store->load(batches_, parts_.session.requests);
  });
  store_ = store;
  const int64_t n_given = report_.resumed_batches;
  resume(std::move(progress));
  n_kept_ = report_.resumed_batches - n_given;
  if (n_kept_ > 0) log_line(cat("edit  ", n_kept_, " of ", batches_.size(), " batches taken from an interrupted run"));
}

void EditStream::run(const EditContext& context) {
  const ScheduleOptions& schedule = parts_.job.schedule;
  stopwatch_.lap_part("edit");
  const size_t first = report_.batches.size();
  for (size_t i = first; i < batches_.size(); ++i) {
    edit_batch(context, batches_[i]);
    if (i == first) show_chosen(report_.batches.back().outcome);
    stopwatch_.lap_part("edit");
    if (i + 1 < batches_.size()) measure(context);
    if (recorder_) recorder_->close(report_.batches.back());  // the last one for now: it is measured at the end
    if (schedule.saves_behind(i, batches_.size())) save();
    if (i + 1 < batches_.size()) show(report_.batches.back());
  }
  if (recorder_) {
    recorder_->begin_finish(parts_.transaction);
    weight_hashes_ = first < batches_.size() ? recorder_->history().journal().batches().back().weights
                                             : recorder_->hashes_of(parts_.transaction);
  }
  parts_.job.editor->finish(context, parts_.transaction);
  if (recorder_) recorder_->end_finish(parts_.transaction);
  for (const RoundingLoss& loss : write(context))
    report_.rounding.emplace_back(weight_name(parts_.session.files.config, loss.id), loss);
  report_.outcome = merged_outcome(report_.batches, parts_.session.requests.size());
  report_.chosen.insert(report_.chosen.end(), report_.outcome.chosen.begin(), report_.outcome.chosen.end());
  stopwatch_.lap_part("edit");
}

/// Puts the weights as they would be exported now in the model.
std::vector<RoundingLoss> EditStream::write(const EditContext& context) {
  std::vector<EditRequest> edited = parts_.earlier;
  for (const BatchReport& batch : report_.batches)
    for (const int64_t index : batch.requests) edited.push_back(parts_.session.requests[static_cast<size_t>(index)]);
  parts_.form.prepare(context, edited, parts_.transaction.entries());
  return parts_.transaction.round_as_written();
}

void EditStream::edit_batch(const EditContext& context, const std::vector<int64_t>& batch) {
  std::vector<EditRequest> requests;
  for (const int64_t index : batch) requests.push_back(parts_.session.requests[static_cast<size_t>(index)]);
  BatchReport report;
  report.requests = batch;
  if (recorder_) recorder_->begin(state_, parts_.transaction);
  const auto begun = std::chrono::steady_clock::now();
  report.outcome = parts_.job.editor->edit(context, requests, state_, parts_.transaction);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (recorder_) recorder_->end(requests, report.outcome, state_, parts_.transaction);
  report_.batches.push_back(std::move(report));
}

/// What is `auto` in this stream, as its first batch tells.
void EditStream::show_chosen(const EditOutcome& first) const {
  std::vector<ChosenOption> chosen = report_.chosen;
  chosen.insert(chosen.end(), first.chosen.begin(), first.chosen.end());
  for (const std::string& line : chosen_lines(chosen)) log_line(cat(parts_.job.method, "  ", line));
}

/// On the weights as they would be exported now; editing goes on from the exact ones.
void EditStream::measure(const EditContext& context) {
  BatchReport& batch = report_.batches.back();
  for (const RoundingLoss& loss : write(context))
    batch.growth.emplace_back(weight_name(parts_.session.files.config, loss.id), loss.growth());
  if (parts_.job.schedule.measures_behind(report_.batches.size() - 1, batches_.size())) {
    const bool is_first = report_.batches.size() == 1;
    std::vector<int64_t> measured = batch.requests;
    if (!is_first) measured.insert(measured.end(), batches_.front().begin(), batches_.front().end());
    const std::vector<Tallies> tallies = parts_.session.plan.scores_of(measured)
                                             .run(parts_.model, "evaluate batch", parts_.ranks, &parts_.session.before)
                                             .requests;
    const std::span<const Tallies> all(tallies);
    batch.right_after = pooled(all.first(batch.requests.size()));
    batch.first_batch = is_first ? *batch.right_after : pooled(all.subspan(batch.requests.size()));
  }
  parts_.transaction.put_exact();
  stopwatch_.lap_part("evaluate batches");
}

void EditStream::save() {
  parts_.ranks.together("progress", [&] {
    if (store_ == nullptr) return;
    store_->save({report_.batches, recorder_->history()}, parts_.session.requests);
  });
  stopwatch_.lap_part("save");
}

void EditStream::show(const BatchReport& batch) const {
  std::string line = cat("batch ", report_.batches.size(), "/", batches_.size(), "  ",
                         counted(batch.requests.size(), "request"), "  ", duration_text(batch.seconds));
  const auto add = [&](const char* label, const std::optional<Tallies>& measured) {
    const std::string shares = measured ? shares_text(parts_.session.before.metrics, *measured) : "";
    if (!shares.empty()) line += label + shares;
  };
  add("  ", batch.right_after);
  if (report_.batches.size() > 1) add("; first batch: ", batch.first_batch);
  log_line(line);
}

void EditStream::note_after() {
  BatchReport& last = report_.batches.back();
  last.right_after = pooled_of(report_.after.requests, last.requests);
  last.first_batch = pooled_of(report_.after.requests, batches_.front());
  last.growth.clear();
  for (const auto& [name, loss] : report_.rounding) last.growth.emplace_back(name, loss.growth());
  if (batches_.size() > 1) show(last);
  if (!recorder_) return;
  if (report_.resumed_batches - n_kept_ < static_cast<int64_t>(batches_.size())) {  // else it has a report of its own
    recorder_->report_last(last);
  }
  recorder_->close_finish();
}

void EditStream::note_measured() {
  if (!recorder_) return;
  const std::string when = utc_now();
  std::map<std::string, MeasuredEdit> edits = measured_again(report_.standing, recorder_->history().journal());
  for (size_t i = 0; i < report_.requests.size(); ++i) {
    MeasuredEdit& edit = edits[report_.requests[i].id];
    edit.before = means_of(report_.before.requests[i]);
    edit.after = means_of(report_.after.requests[i]);
    edit.when = when;
    const Verdict& verdict = report_.verdicts[i];
    if (verdict.fate != EditFate::kNotMeasured) edit.took = verdict.fate == EditFate::kTook;
    edit.why = verdict.why;
  }
  recorder_->note_measured(report_.measured_on, weight_hashes_, edits);
}

}  // namespace lancet
