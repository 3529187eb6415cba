#include "edit_stream.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/eval/evaluate.h"
#include "lancet/outcome/drift.h"
#include "lancet/pipeline/facts_at_odds.h"
#include "lancet/pipeline/measure_standing.h"
#include "lancet/requests/same_fact.h"
#include "lancet/runtime/communicator.h"

namespace lancet {
namespace {

/// Adds up the tallies of the given requests. `all` has one entry for each request.
Tallies pooled_of(const std::vector<Tallies>& all, std::span<const int64_t> requests) {
  std::vector<Tallies> some;
  for (const int64_t index : requests) some.push_back(all[static_cast<size_t>(index)]);
  return pooled(some);
}

/// Returns a line for each option: "covariance_weight: auto: 328.9 (layer 0), 415.3 (layer 1)".
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

/// Returns the first metrics that have values, as many as fit in a line.
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

EditStream::EditStream(StreamParts parts, StreamStart start, ProgressStore* store, Stopwatch& stopwatch)
    : parts_(std::move(parts)),
      stopwatch_(stopwatch),
      state_(std::move(start.state)),
      store_(store),
      n_interrupted_(start.n_interrupted) {
  result_.resumed_batches = static_cast<int64_t>(start.batches.size());
  result_.batches = std::move(start.batches);
  if (!parts_.recorded || !parts_.ranks.is_root()) return;
  recorder_.emplace(parts_.inputs.files, parts_.editor, *parts_.recorded);
  if (start.history) recorder_->go_on_from(std::move(*start.history));
}

StreamResult EditStream::run(const EditContext& context) {
  const ScheduleOptions& schedule = parts_.job.schedule;
  stopwatch_.lap_part("edit");
  const size_t first = result_.batches.size();
  for (size_t i = first; i < parts_.batches.size() && !has_drifted(); ++i) {
    edit_batch(context, parts_.batches[i]);
    if (i == first) show_chosen();
    stopwatch_.lap_part("edit");
    if (i + 1 < parts_.batches.size()) measure(context);
    // the last batch gets its report later: it is measured at the end
    if (recorder_) recorder_->add(std::move(*recorded_), result_.batches.back());
    if (schedule.saves_after(i, parts_.batches.size())) save();
    if (i + 1 < parts_.batches.size())
      log_line(batch_line(result_.batches, parts_.batches.size(), parts_.inputs.before.metrics) + drift_line());
  }
  std::vector<WeightHash> weights;
  if (recorder_)
    weights = first < parts_.batches.size() ? recorder_->history().journal().batches().back().weights
                                            : recorder_->hashes_of(parts_.transaction);
  const ChangeCounts before_finish = count_changes(parts_.transaction);
  parts_.editor.finish(context, parts_.transaction);
  if (recorder_)
    result_.record.emplace(StreamRecord{
        .recorder = std::move(*recorder_),
        .finish = changes_since(before_finish, parts_.transaction),
        .weights = std::move(weights),
        .last_is_new = result_.resumed_batches - n_interrupted_ < static_cast<int64_t>(parts_.batches.size())});
  for (const RoundingLoss& loss : write(context))
    result_.rounding.emplace_back(weight_name(parts_.inputs.files.config, loss.id), loss);
  stopwatch_.lap_part("edit");
  return std::move(result_);
}

/// Rounds the weights in the model as they would be exported now.
std::vector<RoundingLoss> EditStream::write(const EditContext& context) {
  std::vector<EditRequest> edited = parts_.earlier;
  for (const BatchReport& batch : result_.batches)
    for (const int64_t index : batch.requests) edited.push_back(parts_.inputs.requests[static_cast<size_t>(index)]);
  parts_.form.prepare(context, edited, parts_.transaction.entries());
  return parts_.transaction.round_as_written();
}

void EditStream::edit_batch(const EditContext& context, const std::vector<int64_t>& batch) {
  std::vector<EditRequest> requests;
  for (const int64_t index : batch) requests.push_back(parts_.inputs.requests[static_cast<size_t>(index)]);
  BatchReport report;
  report.requests = batch;
  std::optional<BatchStart> start;
  if (recorder_) start = recorder_->begin(state_, parts_.transaction);
  const auto begun = std::chrono::steady_clock::now();
  report.outcome = parts_.editor.edit(context, requests, state_, parts_.transaction);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (recorder_) recorded_ = recorder_->end(*start, requests, report.outcome, state_, parts_.transaction);
  result_.batches.push_back(std::move(report));
}

/// Prints the values that lancet chose for `auto` options at the first batch of this stream.
void EditStream::show_chosen() const {
  std::vector<ChosenOption> chosen = parts_.chosen;
  const std::vector<ChosenOption>& first = result_.batches.back().outcome.chosen;
  chosen.insert(chosen.end(), first.begin(), first.end());
  for (const std::string& line : chosen_lines(chosen)) log_line(cat(parts_.job.method, "  ", line));
}

/// Measures the weights as they would be exported now. Editing continues from the exact weights.
void EditStream::measure(const EditContext& context) {
  BatchReport& batch = result_.batches.back();
  for (const RoundingLoss& loss : write(context))
    batch.growth.emplace_back(weight_name(parts_.inputs.files.config, loss.id), loss.growth());
  if (parts_.job.schedule.measures_after(result_.batches.size() - 1, parts_.batches.size())) {
    const bool is_first = result_.batches.size() == 1;
    std::vector<int64_t> measured = batch.requests;
    if (!is_first) measured.insert(measured.end(), parts_.batches.front().begin(), parts_.batches.front().end());
    const std::vector<Tallies> tallies = parts_.inputs.plan.scores_of(measured)
                                             .run(parts_.model, "evaluate batch", parts_.ranks, &parts_.inputs.before)
                                             .requests;
    const std::span<const Tallies> all(tallies);
    batch.right_after = pooled(all.first(batch.requests.size()));
    batch.first_batch = is_first ? *batch.right_after : pooled(all.subspan(batch.requests.size()));
    if (parts_.job.schedule.drift_alarm)
      batch.text_kl = parts_.inputs.plan.text_kl(parts_.model, "evaluate batch", parts_.ranks, parts_.inputs.before);
  }
  parts_.transaction.put_exact();
  stopwatch_.lap_part("evaluate batches");
}

/// Collective. Whether the drift alarm forbids further batches. This includes the last measure of an interrupted run,
/// which only root has.
bool EditStream::has_drifted() const {
  const std::optional<DriftAlarm>& alarm = parts_.job.schedule.drift_alarm;
  if (!alarm || alarm->action != DriftAlarm::Action::kStop) return false;
  const std::optional<Drift> drift = drift_of(*alarm, result_.batches);
  return broadcast_numbers(parts_.ranks, {drift && drift->is_too_far ? 1 : 0}).front() != 0;
}

std::string EditStream::drift_line() const {
  const std::optional<DriftAlarm>& alarm = parts_.job.schedule.drift_alarm;
  if (!alarm || !result_.batches.back().text_kl) return {};
  return cat("; ", drift_text(*alarm, *drift_of(*alarm, result_.batches)));
}

void EditStream::save() {
  parts_.ranks.run_collectively("progress", [&] {
    if (store_ == nullptr) return;
    store_->save({result_.batches, recorder_->history()}, parts_.inputs.requests);
  });
  stopwatch_.lap_part("save");
}

std::string batch_line(const std::vector<BatchReport>& batches, size_t n_batches, std::span<const MetricRow> metrics) {
  const BatchReport& batch = batches.back();
  std::string line = cat("batch ", batches.size(), "/", n_batches, "  ", counted(batch.requests.size(), "request"),
                         "  ", duration_text(batch.seconds));
  const auto add = [&](const char* label, const std::optional<Tallies>& measured) {
    const std::string shares = measured ? shares_text(metrics, *measured) : "";
    if (!shares.empty()) line += label + shares;
  };
  add("  ", batch.right_after);
  if (batches.size() > 1) add("; first batch: ", batch.first_batch);
  return line;
}

BatchReport measured_last_batch(const EditReport& report) {
  BatchReport last = report.batches.back();
  last.right_after = pooled_of(report.after.requests, last.requests);
  last.first_batch = pooled_of(report.after.requests, report.batches.front().requests);
  if (const auto kl = report.after.side_effects.totals.find("text_kl"); kl != report.after.side_effects.totals.end())
    last.text_kl = kl->second.mean();
  last.growth.clear();
  for (const auto& [name, loss] : report.rounding) last.growth.emplace_back(name, loss.growth());
  return last;
}

EditHistory measured_history(StreamRecord record, const EditReport& report) {
  EditRecorder& recorder = record.recorder;
  if (record.last_is_new) recorder.report_last(report.batches.back());
  recorder.set_finish(std::move(record.finish));
  const std::string when = utc_now();
  std::map<std::string, MeasuredEdit> edits = measured_again(report.standing, recorder.history().journal());
  std::set<size_t> edited;
  for (const BatchReport& batch : report.batches) edited.insert(batch.requests.begin(), batch.requests.end());
  for (const size_t i : edited) {
    MeasuredEdit& edit = edits[report.requests[i].id];
    edit.before = means_of(report.before.requests[i]);
    edit.after = means_of(report.after.requests[i]);
    edit.when = when;
    const Verdict& verdict = report.verdicts[i];
    if (verdict.cause != FailureCause::kNotMeasured) edit.success = verdict.cause == FailureCause::kNone;
    edit.why = verdict.why;
  }
  recorder.note_measured(report.measured_on, record.weights, edits);
  return recorder.take_history();
}

StandingMeasure measure_standing(const CausalLM& model, const ModelFiles& files, std::vector<EditRequest> requests,
                                 EvaluationOptions options, Communicator& communicator) {
  options.protocols = without_comparing(std::move(options.protocols));
  std::erase(options.protocols, "easyedit");
  options.side_effects = {};
  StandingMeasure measure{.requests = std::move(requests)};
  if (measure.requests.empty()) return measure;
  const EvaluationPlan plan(*files.tokenizer, measure.requests, options, files.config.max_positions);
  measure.now = plan.run(model, "evaluate earlier edits", communicator);
  return measure;
}

namespace {

constexpr size_t kShown = 3;

std::string first_of(const std::vector<std::string>& texts, std::string_view separator = "; ") {
  const std::span<const std::string> shown(texts.data(), std::min(kShown, texts.size()));
  return cat(join(shown, separator), texts.size() > kShown ? cat(" and ", texts.size() - kShown, " more") : "");
}

/// Returns for example "'London' and 'Rome' after 'Piranha Games, created in'".
std::string targets_text(const EditRequest& one, const EditRequest& other) {
  return cat("'", excerpt(one.target, 40), "' and '", excerpt(other.target, 40), "' after '",
             excerpt(other.prompt.text, 60), "'");
}

std::string joined_text(std::span<const std::string> joined) {
  return cat(counted(joined.size(), "request"), joined.size() == 1 ? " says" : " say",
             " what an earlier one does, and a fact is edited once: ", first_of({joined.begin(), joined.end()}, ", "));
}

std::string contradictions_text(std::span<const EditRequest> requests) {
  std::vector<std::string> pairs;
  for (const auto& [first, second] : find_contradictions(requests))
    pairs.push_back(cat("requests ", requests[first].id, " and ", requests[second].id, ": ",
                        targets_text(requests[first], requests[second])));
  if (pairs.empty()) return {};
  return cat("contradiction: one fact has one target, and not both of ", first_of(pairs),
             ": leave one of each out, or edit them one after another (schedule.batch: 1), and the later one holds");
}

/// Compares earlier edits that are still in the weights with the first request of the job on each fact. A later request
/// on the same fact contradicts the job itself.
std::vector<std::string> standing_texts(const EditedFacts& facts) {
  LatestFacts standing, seen;
  for (const EditRequest& edit : facts.standing) standing.replace(edit);
  std::vector<std::string> replaced, again;
  for (const EditRequest& request : facts.requests) {
    const EditRequest* earlier = standing.find(request);
    if (seen.replace(request) != nullptr || earlier == nullptr) continue;
    if (has_same_target(*earlier, request))
      again.push_back(cat(request.id, " (as ", earlier->id, ")"));
    else
      replaced.push_back(cat("request ", request.id, " and edit ", earlier->id, ": ", targets_text(request, *earlier)));
  }
  std::vector<std::string> lines;
  if (!replaced.empty())
    lines.push_back(
        cat("contradiction with ", counted(replaced.size(), "edit"), " that ",
            replaced.size() == 1 ? "stands, which it replaces: " : "stand, which they replace: ", first_of(replaced)));
  if (!again.empty())
    lines.push_back(cat(counted(again.size(), "request"), again.size() == 1 ? " says" : " say",
                        " what an edit that stands does, and is edited again: ", first_of(again, ", ")));
  return lines;
}

}  // namespace

std::vector<std::string> facts_at_odds(const EditedFacts& facts) {
  std::vector<std::string> lines;
  if (!facts.joined.empty()) lines.push_back(joined_text(facts.joined));
  if (std::string text = contradictions_text(facts.requests); !text.empty()) lines.push_back(std::move(text));
  for (std::string& line : standing_texts(facts)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace lancet
