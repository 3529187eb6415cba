#include "lancet/outcome/edit_report.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/files.h"
#include "lancet/kernels/own_kernels.h"
#include "lancet/outcome/drift.h"
#include "lancet/outcome/report_json.h"
#include "lancet/runtime/tensor.h"
#include "subject_json.h"

namespace lancet {

// report.json: every number with its protocol, and every choice that influenced it.

namespace {

/// Returns the settings of torch and, if a GPU was used, in which types its element-wise operations ran.
Json numerics_json() {
  Json json(named(numerics()));
  if (const std::optional<std::string> kernels = kernels_in_use()) json["kernels"] = *kernels;
  return json;
}

/// Rounds losses to five digits: there are many of them, and they are only drawn as a curve.
Json losses_json(const std::vector<float>& losses) {
  Json json = Json::array();
  for (const float loss : losses) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.5g", static_cast<double>(loss));
    json.push_back(std::strtod(text, nullptr));
  }
  return json;
}

/// Returns null if the metric was not measured, or does not apply.
Json mean_of(const Tallies& tallies, std::string_view metric) {
  const auto found = tallies.find(metric);
  return found == tallies.end() ? Json(nullptr) : mean_json(found->second);
}

/// Returns the figures of one request: metric -> {before, after}.
Json request_metrics(const Tallies& before, const Tallies& after) {
  Json metrics = Json::object();
  for (const auto& [name, tally] : after)
    metrics[name] = {{"before", mean_json(before.at(name))}, {"after", mean_json(tally)}};
  return metrics;
}

Json metrics_json(const EditReport& report) {
  Json metrics = figures_json(report.after.metrics, {report.before.totals, report.before.requests},
                              {report.after.totals, report.after.requests}, "prompts");
  const Tallies after_batches = report.right_after();
  for (const MetricRow& row : report.after.metrics) metrics[row.name]["right_after"] = mean_of(after_batches, row.name);
  return metrics;
}

/// Returns null if the method has no shares of layers.
Json realised_json(const RequestOutcome& outcome) {
  if (!outcome.realised && outcome.realised_by_layer.empty()) return nullptr;
  Json layers = Json::object();
  for (const LayerShare& layer : outcome.realised_by_layer) layers[std::to_string(layer.layer)] = layer.share;
  return {{"total", number_json(outcome.realised)}, {"layers", layers}};
}

Json verdict_json(const Verdict& verdict) {
  const bool measured = verdict.cause != FailureCause::kNotMeasured, succeeded = verdict.cause == FailureCause::kNone;
  return {{"success", measured ? Json(succeeded) : Json(nullptr)},
          {"cause", succeeded ? Json(nullptr) : Json(cause_name(verdict.cause))},
          {"why", verdict.why.empty() ? Json(nullptr) : Json(verdict.why)}};
}

Json verdicts_json(const EditReport& report) {
  const SuccessCount count = count_successes(report);
  Json causes = Json::object();
  for (const FailureCause cause :
       {FailureCause::kLeftOut, FailureCause::kValueNotFound, FailureCause::kDidNotFollow, FailureCause::kOther})
    causes[std::string(cause_name(cause))] = std::count_if(
        report.verdicts.begin(), report.verdicts.end(), [&](const Verdict& verdict) { return verdict.cause == cause; });
  return {{"success", count.successes},
          {"measured", count.measured},
          {"written", count.written ? Json(*count.written) : Json(nullptr)},
          {"in_chat", count.in_chat ? Json(*count.in_chat) : Json(nullptr)},
          {"did_not", causes},
          {"metric", kSuccessMetric},
          {"subjects", subjects_json(report)},
          {"text", success_text(count)}};
}

Json requests_json(const EditReport& report) {
  Json requests = Json::array();
  for (size_t i = 0; i < report.requests.size(); ++i) {
    const EditRequest& request = report.requests[i];
    const RequestOutcome& outcome = report.outcome.requests[i];
    Json row = {{"id", request.id},
                {"prompt", request.prompt.text},
                {"subject", request.subject},
                {"target", request.target},
                {"target_true", request.target_true ? Json(*request.target_true) : Json(nullptr)},
                {"value",
                 {{"steps", outcome.steps},
                  {"initial_loss", number_json(outcome.initial_loss)},
                  {"final_loss", number_json(outcome.final_loss)},
                  {"initial_norm", number_json(outcome.initial_norm)},
                  {"delta_norm", number_json(outcome.delta_norm)},
                  {"realised", realised_json(outcome)},
                  {"losses", losses_json(outcome.losses)}}},
                {"verdict", verdict_json(report.verdicts[i])},
                {"skipped", outcome.skipped.empty() ? Json(nullptr) : Json(outcome.skipped)},
                {"metrics", request_metrics(report.before.requests[i], report.after.requests[i])}};
    if (!report.after.target_probabilities.empty())
      row["target_probability"] = {{"before", report.before.target_probabilities[i]},
                                   {"after", report.after.target_probabilities[i]}};
    if (!report.after.continuations.empty())
      row["continuation"] = {{"before", report.before.continuations[i]}, {"after", report.after.continuations[i]}};
    row["subject_answers"] = subject_json(report, i);
    requests.push_back(std::move(row));
  }
  return requests;
}

/// Returns the figures of one batch: metric -> its own requests right after it and after all batches, and the first
/// batch's requests right after it.
Json batch_metrics(const EditReport& report, const BatchReport& batch) {
  std::vector<Tallies> own;
  for (const int64_t index : batch.requests) own.push_back(report.after.requests[static_cast<size_t>(index)]);
  Json metrics = Json::object();
  for (const auto& [name, after_all] : pooled(own))
    metrics[name] = {{"right_after", mean_of(batch.right_after.value_or(Tallies{}), name)},
                     {"after_all", mean_json(after_all)},
                     {"first_batch", mean_of(batch.first_batch.value_or(Tallies{}), name)}};
  return metrics;
}

Json batches_json(const EditReport& report) {
  Json batches = Json::array();
  for (const BatchReport& batch : report.batches) {
    Json ids = Json::array(), growth = Json::object();
    int64_t steps = 0, skipped = 0;
    for (size_t i = 0; i < batch.requests.size(); ++i) {
      ids.push_back(report.requests[static_cast<size_t>(batch.requests[i])].id);
      steps += batch.outcome.requests[i].steps;
      if (!batch.outcome.requests[i].skipped.empty()) ++skipped;
    }
    for (const auto& [name, size] : batch.growth) growth[name] = size;
    batches.push_back({{"requests", ids},
                       {"seconds", batch.seconds},
                       {"steps", steps},
                       {"skipped", skipped},
                       {"metrics", batch_metrics(report, batch)},
                       {"text_kl", number_json(batch.text_kl)},
                       {"growth", growth}});
  }
  return batches;
}

/// Returns null if the job has no alarm, or nothing was measured.
Json drift_json(const EditReport& report, const JobConfig& job) {
  const std::optional<DriftAlarm>& alarm = job.schedule.drift_alarm;
  const std::optional<Drift> drift = alarm ? drift_of(*alarm, report.batches) : std::nullopt;
  if (!drift) return nullptr;
  return {{"text_kl", drift->text_kl},
          {"limit", alarm->text_kl},
          {"after_batches", drift->batches},
          {"set_off", drift->is_too_far},
          {"edits_left", drift->edits_left ? Json(*drift->edits_left) : Json(nullptr)},
          {"stopped", report.stopped.empty() ? Json(nullptr) : Json(report.stopped)}};
}

Json schedule_json(const EditReport& report, const JobConfig& job) {
  return {{"batch", job.schedule.batch},
          {"order", job.schedule.order == BatchOrder::kShuffled ? "shuffled" : "file"},
          {"measure_every", job.schedule.measure_every},
          {"resumed_batches", report.resumed_batches},
          {"drift", drift_json(report, job)},
          {"continued_from", job.continue_from ? Json(job.continue_from->string()) : Json(nullptr)},
          {"earlier_edits", report.earlier_edits}};
}

/// Returns the options that are `auto`, with the values that lancet chose.
Json chosen_json(const EditReport& report) {
  Json chosen = Json::array();
  for (const ChosenOption& each : report.chosen)
    chosen.push_back({{"option", each.option}, {"layer", each.layer}, {"value", each.value}});
  return chosen;
}

Json weights_json(const EditReport& report) {
  Json weights = Json::array();
  for (const auto& [name, loss] : report.rounding)
    weights.push_back({{"name", name},
                       {"weight_norm", loss.weight_norm},
                       {"delta_norm", loss.delta_norm},
                       {"rounding_loss", loss.relative_loss}});
  for (const RequantisedWeight& loss : report.requantised)
    for (Json& weight : weights)
      if (weight["name"] == loss.name)
        weight.update(
            {{"edit_lost", loss.edit_lost}, {"text_error", loss.text_error ? Json(*loss.text_error) : Json(nullptr)}});
  return weights;
}

Json statistics_json(const EditReport& report, const JobConfig& job) {
  if (report.statistics.layers.empty()) return nullptr;
  const StatisticsOptions& options = *job.statistics;
  Json cached = Json::array(), factored = Json::array(), imported = Json::array();
  for (const LayerStatisticsReport& layer : report.statistics.layers) {
    if (layer.from_cache) cached.push_back(layer.layer);
    if (layer.factor_from_cache) factored.push_back(layer.layer);
    if (!layer.imported_file.empty()) imported.push_back(import_json(layer));
  }
  Json json = Json::object();
  if (!options.takes_text()) {
    json["imported_from"] = imported;
  } else {
    const bool self = options.from == StatisticsFrom::kSelf;
    json["corpus"] = self ? std::string(kSelfCorpus) : options.corpus.string();
    const int64_t used = report.statistics.layers.front().tokens;
    json["tokens_asked"] = options.tokens.value_or(used);  // a model writes as many as it is asked for
    json["tokens_used"] = used;
    json["corpus_exhausted"] = report.statistics.corpus_exhausted;
    json["document_tokens"] = options.document_tokens;
  }
  json["ridge"] = options.ridge;
  json["layers_from_cache"] = cached;
  json["factors_from_cache"] = factored;
  return json;
}

/// Returns null if no history was kept.
Json journal_json(const EditReport& report) {
  if (report.journal.empty()) return nullptr;
  Json batches = Json::array(), undone = Json::array();
  for (const JournalBatch& batch : report.journal)
    batches.push_back({{"when", batch.when}, {"method", batch.method}, {"edits", batch.edits}});
  for (const UndoEntry& undo : report.undone) undone.push_back(describe_undo(undo));
  return {{"batches", batches}, {"undone", undone}};
}

}  // namespace

Tallies EditReport::right_after() const {
  std::vector<Tallies> measured;
  for (const BatchReport& batch : batches) {
    if (!batch.right_after) return {};
    measured.push_back(*batch.right_after);
  }
  Tallies all = pooled(measured);
  // texts are generated only at the end, so the last batch says nothing about the others
  for (auto& [name, tally] : all)
    if (const auto after_all = after.totals.find(name);
        after_all != after.totals.end() && after_all->second.count != tally.count)
      tally = {};
  return all;
}

namespace {

/// Says how well earlier edits hold now.
Json standing_json(const StandingMeasure& standing) {
  Json edits = Json::array();
  for (size_t i = 0; i < standing.requests.size(); ++i) {
    const std::optional<bool> says = says_target(standing.now, i);
    edits.push_back({{"id", standing.requests[i].id},
                     {"success", says ? Json(*says) : Json(nullptr)},
                     {"metrics", means_of(standing.now.requests[i])}});
  }
  return {{"text", standing_text(standing)}, {"edits", edits}};
}

Json warnings_json(const EditReport& report) {
  Json warnings = report.at_odds;
  for (const std::string& warning : report.outcome.warnings) warnings.push_back(warning);
  return warnings;
}

}  // namespace

std::string to_json(const EditReport& report, const ResolvedJob& job) {
  Json accept = Json::object();
  for (const auto& [name, threshold] : job.accept) accept[name] = threshold;
  Json seconds = Json::object(), peaks = Json::object();
  for (const StageCost& stage : report.stages) {
    seconds[stage.stage] = stage.seconds;
    peaks[stage.stage] = bytes_json(stage.peaks);
  }
  const ValueOptions* options = job.editor->values();
  const Json json = {
      {"format", "lancet-report-1"},
      {"lancet", kVersion},
      {"status", !report.unmet.empty() ? "rejected"
                 : job.accept.empty()  ? "done"
                                       : "accepted"},
      {"accept", accept},
      {"unmet", report.unmet},
      {"verdicts", verdicts_json(report)},
      {"metrics", metrics_json(report)},
      {"side_effects", side_effects_json(report.before.side_effects, report.after.side_effects)},
      {"measured_on", report.measured_on},
      {"output_format", report.output_format},
      {"model",
       {{"folder", job.model.string()}, {"content_hash", report.base_hash}, {"run_dtype", report.model_dtype}}},
      {"method", job.method},
      {"chosen", chosen_json(report)},
      {"contexts", report.contexts},
      {"statistics", statistics_json(report, job)},
      {"values",
       {{"batches", report.outcome.batching.batches},
        {"largest_batch", report.outcome.batching.largest},
        {"halvings", report.outcome.batching.halvings},
        {"resumed", report.outcome.batching.resumed},
        {"contexts_per_step", options == nullptr ? 0 : options->contexts_per_step}}},
      {"schedule", schedule_json(report, job)},
      {"batches", batches_json(report)},
      {"journal", journal_json(report)},
      {"standing", standing_json(report.standing)},
      {"weights", weights_json(report)},
      {"warnings", warnings_json(report)},
      {"run",
       {{"devices", report.devices},
        {"seed", job.run.seed},
        {"threads", job.run.threads},
        {"ranks", report.ranks},
        {"numerics", numerics_json()}}},
      {"seconds", seconds},
      {"peak_bytes", bytes_json(overall_peaks(report.stages))},
      {"stage_peak_bytes", peaks},
      {"skipped_records", skipped_json(report.skipped)},
      {"requests", requests_json(report)}};
  return dump_report(json);
}

namespace {

/// Returns the job as YAML, with the generated contexts and the recognised format, so that a rerun uses the same.
std::string resolved_yaml(const EditReport& report, const ResolvedJob& job) {
  ConfigTree resolved = with_format(job.resolved, report.request_format);
  if (job.editor->contexts() != nullptr) {
    std::vector<ConfigTree> contexts;
    for (const std::string& text : report.contexts) contexts.push_back(ConfigTree::text(text));
    ConfigTree editor = *resolved.find("editor");
    editor.set("contexts", ConfigTree::list(std::move(contexts)));
    resolved.set("editor", std::move(editor));
  }
  return to_yaml(resolved);
}

/// Draws a page. A failure is only a warning: pages are made from the JSON and can be made again, and hours of editing
/// must not be lost.
void try_to_draw(const char* page, const std::function<void()>& draw) {
  try {
    draw();
  } catch (const ConfigError& error) {
    log_warning(cat(page, " is not written: ", error.what(), ". report.json is whole; lancet report DIR tries again"));
  }
}

}  // namespace

RunDocument run_document(const EditReport& report, const ResolvedJob& job, std::string label) {
  return {
      .label = std::move(label), .json = to_json(report, job), .job_yaml = resolved_yaml(report, job), .failure = {}};
}

void write_report_files(const RunDocument& run, const std::filesystem::path& folder) {
  write_text_file(folder / kReportFile, run.json);
  write_text_file(folder / "job.yaml", run.job_yaml);
  try_to_draw("report.html", [&] {
    const ReportFiles files = render_report(run);
    for (const auto& [name, text] : files.named()) write_text_file(folder / name, text);
  });
}

void write_comparison(std::span<const RunDocument> runs, const std::string& title,
                      const std::filesystem::path& folder) {
  try_to_draw("comparison.html", [&] { write_text_file(folder / "comparison.html", render_comparison(runs, title)); });
}

}  // namespace lancet
