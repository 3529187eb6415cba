#include "method_run.h"

#include "edit_stream.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/runtime/collectives.h"
#include "lancet/training/value_store.h"

namespace lancet {

namespace {

/// Of a job whose edits are all there: no values, no solves, no passes over text.
JobWork restoring(JobWork work) {
  work.optimizes_values = false;
  work.backward.reset();
  work.batch = 1;
  work.history_keys = 0;
  if (work.packing == Packing::kByMoments) return work;
  work.statistics_layers.clear();
  return without_text(std::move(work));
}

}  // namespace

MethodRun::MethodRun(const JobConfig& job, EditSession& session, Communicator& ranks,
                     std::shared_ptr<PreparedMethod> prepared, std::optional<OutputOptions> output, MethodWork kind)
    : job_(job),
      session_(session),
      ranks_(ranks),
      prepared_(prepared ? std::move(prepared) : std::make_shared<PreparedMethod>()),
      kind_(kind) {
  output_ = output.value_or(OutputOptions{.format = OutputFormat::kCheckpoint});
  form_ = make_output_form({output_, session.files, *job.editor, [this](int64_t layer) {
                              return has_moments() ? prepared_->statistics->moment(layer) : Tensor();
                            }});
  if (needs_moments(output_) && !job.statistics)
    throw ConfigError(cat("output.rounding: it goes by statistics, and ", job.method,
                          " needs none by itself: expected a section statistics, or output.rounding: nearest"));
  std::vector<std::string> assumptions;  // the tokenizer leaves few, which lancet plan shows
  // before the statistics' text is read: requests that cannot be placed fail here
  work_ = edit_work(job, session.files.config, {session.files.tokenizer.get(), session.requests, session.plan.size()},
                    assumptions);
  if (job.continue_from && ranks.is_root()) earlier_.emplace(job, session.requests, session.files.config);
  std::optional<JobStatistics>& statistics = prepared_->statistics;
  if (kind_ == MethodWork::kRestores) work_ = restoring(std::move(work_));
  if ((kind_ != MethodWork::kRestores && job.editor->needs().statistics) || needs_moments(output_)) {
    if (!statistics) statistics.emplace(job, session.files, ranks, session.corpus);
    if (needs_moments(output_) && !statistics->has_moments())
      throw ConfigError(
          "output.rounding: it goes by the keys' second moments, and statistics.import_null_space has none: expected "
          "output.rounding: nearest, or statistics of a corpus");
    session.corpus = statistics->corpus();
    statistics->describe(work_);
  }
}

void MethodRun::look_into_cache() {
  // moments themselves are kept apart from what solves need
  if (!prepared_->statistics || prepared_->is_ready || needs_moments(output_)) return;
  if (!job_.statistics->takes_text()) return;
  std::vector<int64_t> is_there;
  ranks_.together("open", [&] {
    if (ranks_.is_root()) is_there = {prepared_->statistics->is_cached(session_.files.checkpoint)};
  });
  if (broadcast_numbers(ranks_, is_there).front() != 0) work_ = without_text(std::move(work_));
}

void MethodRun::prepare(const CausalLM& model) {
  report_.requests = session_.requests;
  report_.request_format = session_.request_format;
  report_.skipped = session_.skipped;
  report_.at_odds = session_.at_odds;
  report_.base_hash = session_.base_hash;
  report_.model_dtype = session_.model_dtype;
  report_.devices = session_.devices;
  report_.ranks = ranks_.size();
  if (!prepared_->is_ready) {
    const bool asks_in_contexts = kind_ == MethodWork::kEdits || needs_moments(output_);
    if (const ContextOptions* contexts = job_.editor->contexts(); contexts != nullptr && asks_in_contexts)
      prepared_->contexts = make_contexts(model, *session_.files.tokenizer, *contexts, job_.run.seed, ranks_);
    if (prepared_->statistics) prepared_->statistics->prepare(model, session_.base_hash, ranks_);
    prepared_->is_ready = true;
  }
  report_.contexts = prepared_->contexts;
  if (!prepared_->statistics) return;
  report_.statistics = prepared_->statistics->report();
  if (const std::optional<NullSpaceRule> rule = job_.editor->needs().null_space; rule && !rule->below)
    for (const LayerStatistics& layer : report_.statistics.layers)
      if (layer.null_space_below) report_.chosen.push_back({"null_space_below", layer.layer, *layer.null_space_below});
  if (output_.format == OutputFormat::kQuantised && has_moments()) prepared_->statistics->prepare_moments(ranks_);
  stopwatch_.lap("statistics");
}

void MethodRun::edit(CausalLM& model, WeightTransaction& transaction, Start start) {
  report_.before = session_.before;
  report_.output_format = OutputSpec::kFormats[static_cast<size_t>(output_.format)];
  report_.measured_on = form_->read_back_text();
  if (job_.run.frozen)
    report_.measured_on +=
        cat(", the others as ", quantiser_name(*job_.run.frozen), ", which the output does not have");
  const std::vector<EditRequest> standing = standing_requests(start);
  transaction.write_as([this](const WeightTransaction::Entry& entry) { return form_->read_back(entry); });
  EditStream stream({.job = job_,
                     .session = session_,
                     .model = model,
                     .transaction = transaction,
                     .ranks = ranks_,
                     .form = *form_,
                     .earlier = earlier_requests(),
                     .recorded = start.records ? std::optional(recorded_setting()) : std::nullopt,
                     .batches = std::move(start.batches)},
                    report_, stopwatch_);
  if (job_.continue_from) {
    std::optional<EditHistory> earlier;
    ranks_.together("progress", [&] {
      if (earlier_) earlier = earlier_->history(session_.base_hash);
    });
    stream.begin_behind(std::move(earlier));
  }
  if (start.behind) stream.go_on_with(std::move(*start.behind));
  report_.earlier_edits = stream.state().edits;
  stream.resume(start.done ? std::optional(progress_of(std::move(*start.done))) : std::nullopt);
  std::optional<ValueStore> values;
  std::optional<ProgressStore> progress;
  if (start.unfinished) {
    values.emplace(*start.unfinished, model_key(), [&transaction] { return transaction.changes_key(); });
    if (ranks_.is_root()) progress.emplace(*start.unfinished, session_.files.config, setting_key(transaction));
    stream.keep_in(progress ? &*progress : nullptr);
  }
  EditContext context(model, *session_.files.tokenizer, report_.contexts,
                      prepared_->statistics ? prepared_->statistics->algebra() : LayerAlgebra{},
                      {ranks_, values ? &*values : nullptr});
  context.keep_systems_in(stream.systems());
  stream.run(context);
  report_.requantised = form_->losses();
  report_.after = session_.plan.run(model, "evaluate after", ranks_, &session_.before);
  report_.standing = measure_standing(model, session_.files, standing, job_.evaluation, ranks_);
  transaction.write_as({});
  stream.note_after();
  const ConfigTree& editor = *job_.resolved.find("editor");
  report_.verdicts = judge_edits(report_, editor);
  for (std::string& warning : edit_warnings(report_, editor)) report_.outcome.warnings.push_back(std::move(warning));
  stream.note_measured();
  stopwatch_.lap("evaluate after");
  history_ = stream.take_history();
  if (!history_) return;
  weight_hashes_ = stream.weight_hashes();
  const Journal& journal = history_->journal();
  for (const BatchEntry& batch : journal.batches())
    report_.journal.push_back({batch.when, journal.settings()[batch.setting].method, batch.edits.size()});
  report_.undone = journal.undone();
}

EditContext MethodRun::context(const CausalLM& model) const {
  return EditContext(model, *session_.files.tokenizer, report_.contexts,
                     prepared_->statistics ? prepared_->statistics->algebra() : LayerAlgebra{}, {ranks_});
}

RecordedSetting MethodRun::recorded_setting() const {
  ConfigTree job = job_.resolved;
  for (const char* section : {"requests", "output", "continue_from"}) job.erase(section);
  return {.base = [this] { return journal_base(session_.files, session_.base_hash); },
          .setting = {.method = job_.method,
                      .editor = editor_options(job_),
                      .job = to_yaml(job),
                      .contexts = report_.contexts,
                      .statistics = prepared_->statistics ? prepared_->statistics->content_key() : "",
                      .dtype = session_.model_dtype,
                      .version = kVersion}};
}

/// Collective. Where they are measured again, on every rank; else none.
std::vector<EditRequest> MethodRun::standing_requests(const Start& start) const {
  if (!job_.evaluation.standing) return {};
  return start.behind ? start.behind->journal().requests() : earlier_requests();
}

/// Collective. On every rank, where they are measured or their keys are part of what weights are written by; else none.
std::vector<EditRequest> MethodRun::earlier_requests() const {
  if (!job_.continue_from || !(needs_moments(output_) || job_.evaluation.standing)) return {};
  std::vector<std::string> lines;
  if (earlier_)
    for (const EditRequest& request : earlier_->requests()) lines.push_back(to_json_line(request));
  std::vector<EditRequest> requests;
  for (const std::string& line : broadcast_texts(ranks_, lines)) requests.push_back(parse_json_line(line));
  return requests;
}

/// Everything but the requests and the options that a value depends on: config.json too says what the weights compute.
std::string MethodRun::model_key() const {
  ContentHash hash;
  hash.add(session_.base_hash).add(session_.files.checkpoint.config_text()).add(session_.model_dtype);
  if (job_.run.frozen) hash.add(freeze_rule(job_, session_.files.config).key(session_.files.config));
  return hash.hex();
}

/// Everything that a batch's outcome and metrics depend on but its requests and those before it.
std::string MethodRun::setting_key(WeightTransaction& transaction) const {
  ContentHash hash;
  hash.add(model_key()).add(editor_options(job_)).add(transaction.changes_key()).add(report_.earlier_edits);
  hash.add(prepared_->statistics ? prepared_->statistics->content_key() : "").add(job_.schedule.measure_every);
  for (const std::string& context : report_.contexts) hash.add(context);
  for (const std::string& protocol : job_.evaluation.protocols) hash.add(protocol);
  hash.add(job_.evaluation.counterfact.snippets.string());
  return hash.hex();
}

}  // namespace lancet
