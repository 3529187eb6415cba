#include "lancet/pipeline/method_run.h"

#include <algorithm>
#include <span>

#include "edit_stream.h"
#include "lancet/core/hash.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/outcome/drift.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/measure_standing.h"
#include "lancet/runtime/communicator.h"
#include "lancet/training/values.h"

namespace lancet {
namespace {

/// Returns the work of a job whose edits are all stored: no values, no solves, no passes over text.
Workload restoring(Workload work) {
  work.optimizes_values = false;
  work.backward.reset();
  work.batch = 1;
  work.history_keys = 0;
  if (work.packing == Packing::kByMoments) return work;
  work.statistics_layers.clear();
  return without_text(std::move(work));
}

/// Notes in the report why the drift alarm ended the stream, and marks each request that was not edited as skipped.
void note_stopped(EditReport& report, std::span<const std::vector<int64_t>> batches) {
  int64_t left = 0;
  for (const std::vector<int64_t>& batch : batches.subspan(report.batches.size()))
    for (const int64_t request : batch) {
      report.outcome.requests[static_cast<size_t>(request)].skipped = "the drift alarm had stopped the stream";
      ++left;
    }
  report.stopped = cat("the drift alarm stopped the stream after batch ", report.batches.size(), " of ", batches.size(),
                       ", text_kl ", *report.batches.back().text_kl, ": ",
                       counted(static_cast<size_t>(left), "request"), " ", left == 1 ? "was" : "were", " not edited");
  report.outcome.warnings.push_back(
      cat(report.stopped, "; lancet undo --last takes the last batch back, a higher schedule.drift_alarm.text_kl with ",
          "continue_from goes on"));
}

/// Warns if the drift alarm went off but did not stop the stream (`action: warn`, or the last batch).
void warn_of_drift(EditReport& report, const std::optional<DriftAlarm>& alarm) {
  const std::optional<Drift> drift = alarm && report.stopped.empty() ? drift_of(*alarm, report.batches) : std::nullopt;
  if (drift && drift->is_too_far)
    report.outcome.warnings.push_back(cat("after batch ", drift->batches, ": ", drift_text(*alarm, *drift)));
}

/// Notes the batches whose edits are in the weights, and those that were taken back.
void note_journal(const Journal& journal, EditReport& report) {
  for (const BatchEntry& batch : journal.batches())
    report.journal.push_back({batch.when, journal.settings()[batch.setting].method, batch.edits.size()});
  report.undone = journal.undone();
}

/// Warns of rewordings that the method does not edit.
void warn_of_rewordings(std::span<const EditRequest> requests, const Editor& editor) {
  if (editor.values() != nullptr) return;
  if (std::ranges::any_of(requests, [](const EditRequest& request) { return !request.rewordings.empty(); }))
    log_warning("requests have rewordings, and this method trains on the prompts alone: it does not edit them");
}

}  // namespace

MethodRun::MethodRun(const ResolvedJob& job, EditInputs& inputs, Communicator& ranks, MethodOptions options)
    : job_(job),
      inputs_(inputs),
      ranks_(ranks),
      prepared_(options.prepared ? std::move(options.prepared) : std::make_shared<PreparedMethod>()),
      kind_(options.work) {
  output_ = options.output.value_or(OutputOptions{.format = OutputFormat::kCheckpoint});
  form_ = make_output_form({output_, inputs.files, *job_.editor, [this](int64_t layer) {
                              return has_moments() ? prepared_->statistics->moment(layer) : Tensor();
                            }});
  if (needs_moments(output_) && !job.statistics)
    throw ConfigError(cat("output.rounding: it goes by statistics, and ", job.method,
                          " needs none by itself: expected a section statistics, or output.rounding: nearest"));
  std::vector<std::string> assumptions;  // few remain, because the tokenizer is there; `lancet plan` shows them
  // before the text of the statistics is read, so that requests that cannot be placed fail early
  work_ = edit_work(job, inputs.files.config, {inputs.files.tokenizer.get(), inputs.requests, inputs.plan.size()},
                    assumptions);
  if (kind_ == MethodWork::kEdits) check_old_answers(inputs.requests, *job_.editor);
  if (kind_ == MethodWork::kEdits && ranks.is_root()) warn_of_rewordings(inputs.requests, *job_.editor);
  if (job.continue_from && ranks.is_root()) earlier_.emplace(job, inputs.requests, inputs.files.config);
  std::optional<JobStatistics>& statistics = prepared_->statistics;
  if (kind_ == MethodWork::kRestores) work_ = restoring(std::move(work_));
  if ((kind_ != MethodWork::kRestores && job_.needs.statistics) || needs_moments(output_)) {
    if (!statistics) statistics.emplace(job, inputs.files, ranks, inputs.corpus);
    statistics->keep_in(inputs.kept);
    if (needs_moments(output_) && !statistics->has_moments())
      throw ConfigError(
          "output.rounding: it goes by the keys' second moments, and statistics.import_null_space has none: expected "
          "output.rounding: nearest, or statistics of a corpus");
    inputs.corpus = statistics->corpus();
    statistics->describe(work_);
  }
}

void MethodRun::look_into_cache() {
  // covariances are cached in other files than what solves need
  if (!prepared_->statistics || prepared_->is_ready || needs_moments(output_)) return;
  if (!job_.statistics->takes_text()) return;
  std::vector<int64_t> is_there;
  ranks_.run_collectively("open", [&] {
    if (ranks_.is_root()) is_there = {prepared_->statistics->is_cached(inputs_.files.checkpoint)};
  });
  if (broadcast_numbers(ranks_, is_there).front() != 0) work_ = without_text(std::move(work_));
}

void MethodRun::prepare(const CausalLM& model) {
  std::optional<JobStatistics>& statistics = prepared_->statistics;
  if (!prepared_->is_ready) {
    const bool asks_in_contexts = kind_ == MethodWork::kEdits || needs_moments(output_);
    if (const ContextOptions* contexts = job_.editor->contexts(); contexts != nullptr && asks_in_contexts)
      prepared_->contexts = make_contexts(model, inputs_.files, *contexts, job_.run.seed, ranks_);
    if (statistics) statistics->prepare(model, inputs_.base_hash, ranks_);
    prepared_->is_ready = true;
  }
  if (!statistics) return;
  if (output_.format == OutputFormat::kQuantised && has_moments()) statistics->prepare_moments(ranks_);
  stopwatch_.lap("statistics");
}

/// Fills in what is known about the edit before it begins.
EditReport MethodRun::described() const {
  EditReport report;
  report.requests = inputs_.requests;
  report.request_format = inputs_.request_format;
  report.skipped = inputs_.skipped;
  report.at_odds = inputs_.at_odds;
  report.contexts = prepared_->contexts;
  report.before = inputs_.before;
  report.output_format = OutputSpec::kFormats[static_cast<size_t>(output_.format)];
  report.measured_on = form_->read_back_text();
  report.base_hash = inputs_.base_hash;
  report.model_dtype = inputs_.model_dtype;
  report.devices = inputs_.devices;
  report.ranks = ranks_.size();
  if (const std::string& quantiser = job_.run.quantise_base; !quantiser.empty())
    report.measured_on += cat(", the others as ", quantiser, ", which the output does not have");
  if (!prepared_->statistics) return report;
  report.statistics = prepared_->statistics->report();
  if (const std::optional<NullSpaceRule> rule = job_.needs.null_space; rule && !rule->below)
    for (const LayerStatisticsReport& layer : report.statistics.layers)
      if (layer.null_space_below) report.chosen.push_back({"null_space_below", layer.layer, *layer.null_space_below});
  return report;
}

StreamParts MethodRun::parts_of(CausalLM& model, WeightTransaction& transaction, const Start& start,
                                const std::vector<ChosenOption>& chosen) const {
  const auto n_requests = static_cast<int64_t>(inputs_.requests.size());
  return {.job = job_,
          .editor = *job_.editor,
          .inputs = inputs_,
          .model = model,
          .transaction = transaction,
          .ranks = ranks_,
          .form = *form_,
          .batches = start.batches ? *start.batches : plan_schedule(job_.schedule, n_requests, job_.run.seed),
          .earlier = earlier_requests(),
          .recorded = start.records ? std::optional(recorded_setting()) : std::nullopt,
          .chosen = chosen};
}

/// Collective. Returns the start after all earlier edits, including those of the job that this one continues.
StreamStart MethodRun::first_start(const StreamParts& parts, Start& start) const {
  if (start.after) return after_standing(parts, std::move(*start.after));
  if (!job_.continue_from) return after_nothing(parts);
  std::optional<EditHistory> earlier;
  ranks_.run_collectively("progress", [&] {
    if (earlier_) earlier = earlier_->history(inputs_.base_hash);
  });
  return after_output(parts, std::move(earlier));
}

EditedMethod MethodRun::edit(CausalLM& model, WeightTransaction& transaction, Start start) {
  EditedMethod edited{.report = described()};
  EditReport& report = edited.report;
  std::vector<EditRequest> standing = standing_requests(start);
  transaction.write_as([this](const WeightTransaction::Entry& entry) { return form_->read_back(entry); });
  const StreamParts parts = parts_of(model, transaction, start, report.chosen);
  StreamStart begun = first_start(parts, start);
  report.earlier_edits = begun.state.edits;
  begun = after_batches(parts, std::move(begun),
                        start.done ? std::optional(progress_of(std::move(*start.done))) : std::nullopt);
  std::optional<ValueStore> values;
  std::optional<ProgressStore> progress;
  if (start.unfinished) {
    values.emplace(*start.unfinished, model_key(), [&transaction] { return transaction.changes_key(); });
    if (ranks_.is_root())
      progress.emplace(*start.unfinished, inputs_.files.config, setting_key(report.earlier_edits, transaction));
    begun = after_interrupted(parts, std::move(begun), progress ? &*progress : nullptr);
  }
  EditStream stream(parts, std::move(begun), progress ? &*progress : nullptr, stopwatch_);
  EditContext context(model, *inputs_.files.tokenizer, prepared_->contexts,
                      prepared_->statistics ? prepared_->statistics->algebra() : LayerStatistics{},
                      {ranks_, values ? &*values : nullptr, job_.run.step_launch, job_.run.seed});
  context.keep_systems_in(stream.systems());
  StreamResult result = stream.run(context);
  report.batches = std::move(result.batches);
  report.resumed_batches = result.resumed_batches;
  report.rounding = std::move(result.rounding);
  report.outcome = merged_outcome(report.batches, report.requests.size());
  if (report.batches.size() < parts.batches.size()) note_stopped(report, parts.batches);
  report.chosen.insert(report.chosen.end(), report.outcome.chosen.begin(), report.outcome.chosen.end());
  report.requantised = form_->losses();
  report.after = inputs_.plan.run(model, "evaluate after", ranks_, &inputs_.before);
  report.standing = measure_standing(model, inputs_.files, std::move(standing), job_.evaluation, ranks_);
  transaction.write_as({});
  judge(report);
  if (result.record) {
    edited.weight_hashes = result.record->weights;
    edited.history = measured_history(std::move(*result.record), report);
    note_journal(edited.history->journal(), report);
  }
  stopwatch_.lap("evaluate after");
  return edited;
}

/// Adds what follows from the measure: the metrics of the last batch, verdicts, warnings.
void MethodRun::judge(EditReport& report) const {
  report.batches.back() = measured_last_batch(report);
  warn_of_drift(report, job_.schedule.drift_alarm);
  if (report.batches.size() > 1) log_line(batch_line(report.batches, report.batches.size(), report.before.metrics));
  report.verdicts = judge_edits(report, job_.editor_options);
  for (std::string& warning : edit_warnings(report, job_.editor_options))
    report.outcome.warnings.push_back(std::move(warning));
}

EditContext MethodRun::context(const CausalLM& model) const {
  return EditContext(model, *inputs_.files.tokenizer, prepared_->contexts,
                     prepared_->statistics ? prepared_->statistics->algebra() : LayerStatistics{},
                     {.communicator = ranks_, .seed = job_.run.seed});
}

RecordedSetting MethodRun::recorded_setting() const {
  ConfigTree job = job_.resolved;
  for (const char* section : {"requests", "output", "continue_from"}) job.erase(section);
  return {.base = [this] { return journal_base(inputs_.files, inputs_.base_hash); },
          .setting = {.method = job_.method,
                      .editor = editor_yaml(job_),
                      .job = to_yaml(job),
                      .contexts = prepared_->contexts,
                      .statistics = prepared_->statistics ? prepared_->statistics->content_key() : "",
                      .dtype = inputs_.model_dtype,
                      .version = kVersion}};
}

/// Collective. Returns the earlier requests on every rank if they are measured again, else none.
std::vector<EditRequest> MethodRun::standing_requests(const Start& start) const {
  if (!job_.evaluation.standing) return {};
  return start.after ? start.after->journal().requests() : earlier_requests();
}

/// Collective. Returns the earlier requests on every rank if they are measured, or if their keys determine how weights
/// are rounded; else none.
std::vector<EditRequest> MethodRun::earlier_requests() const {
  if (!job_.continue_from || !(needs_moments(output_) || job_.evaluation.standing)) return {};
  std::vector<std::string> lines;
  if (earlier_)
    for (const EditRequest& request : earlier_->requests()) lines.push_back(to_json_line(request));
  std::vector<EditRequest> requests;
  for (const std::string& line : broadcast_texts(ranks_, lines)) requests.push_back(parse_json_line(line));
  return requests;
}

/// Hashes everything that a value depends on except the requests and the options. It includes config.json, which
/// determines what the weights compute.
std::string MethodRun::model_key() const {
  ContentHash hash;
  hash.add(inputs_.base_hash).add(inputs_.files.checkpoint.config_text()).add(inputs_.model_dtype);
  if (!job_.run.quantise_base.empty()) hash.add(quantise_rule(job_, inputs_.files.config).key(inputs_.files.config));
  return hash.hex();
}

/// Hashes everything that a batch's result and metrics depend on, except its own requests and the batches before it.
std::string MethodRun::setting_key(int64_t earlier_edits, WeightTransaction& transaction) const {
  ContentHash hash;
  hash.add(model_key()).add(editor_yaml(job_)).add(transaction.changes_key()).add(earlier_edits);
  hash.add(prepared_->statistics ? prepared_->statistics->content_key() : "").add(job_.schedule.measure_every);
  if (job_.schedule.drift_alarm) hash.add(job_.evaluation.side_effects.text->text.string());
  for (const std::string& context : prepared_->contexts) hash.add(context);
  for (const std::string& protocol : job_.evaluation.protocols) hash.add(protocol);
  hash.add(job_.evaluation.counterfact.snippets.string());
  return hash.hex();
}

}  // namespace lancet
