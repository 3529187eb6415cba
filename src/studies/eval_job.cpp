#include "lancet/studies/eval_job.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/files.h"
#include "lancet/models/weight_table.h"
#include "lancet/outcome/report_json.h"
#include "lancet/pipeline/earlier_output.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/job_statistics.h"
#include "lancet/plan/model_session.h"
#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

/// Hashes the bytes that turn the last hidden state into a distribution.
std::string head_hash(const ModelFiles& files) {
  ContentHash hash;
  for (const WeightSpec& spec : resolve_weights(files.config, files.checkpoint))
    if (role_of(spec.id.kind).place == WeightPlace::kHead ||
        (files.config.tied_embeddings && spec.id.kind == WeightKind::kEmbedding))
      for (const std::string& name : spec.tensor_names()) files.checkpoint.view(name).add_to(hash);
  return hash.hex();
}

/// Returns the text of a file beside the weights, which of a GGUF file is made of its metadata. Empty: there is none.
std::string side_text(const Checkpoint& checkpoint, std::string_view name) {
  for (const std::shared_ptr<const MappedFile>& file : checkpoint.side_files())
    if (file->path().filename().string() == name) return file->text();
  return {};
}

std::string tokenizer_text(const ModelFiles& files) {
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (std::string text = side_text(files.checkpoint, name); !text.empty()) return text;
  return side_text(files.checkpoint, "vocab.json") + side_text(files.checkpoint, "merges.txt");
}

/// Throws if the two models cannot be compared: questions are token ids, so both models must have the same tokens.
void check_comparable(const ModelFiles& model, const ModelFiles& baseline, const SideEffectOptions& side_effects) {
  const std::string where = cat("--baseline ", baseline.checkpoint.folder().string(), ": ");
  if (tokenizer_text(model) != tokenizer_text(baseline))
    throw ConfigError(cat(where, "its tokenizer is another one than that of ", model.checkpoint.folder().string(),
                          ": expected a model with the same tokenizer file"));
  if (side_effects.text && head_hash(model) != head_hash(baseline))
    throw ConfigError(cat(where, "its final norm or head is another one than that of ",
                          model.checkpoint.folder().string(),
                          ", and evaluate.side_effects.text compares distributions by one head: leave it out"));
}

/// Collective. Measures one model.
Evaluation measure(const JobConfig& job, const ModelFiles& files, const EvaluationPlan& plan, const std::string& stage,
                   const Evaluation* before, Communicator& communicator) {
  const CausalLM model =
      load_replica(files, job.run, evaluation_work(job.run, files.config, plan.size()), communicator);
  const MemoryWatch memory_watch(devices_with_memory(model.placement(), files.config.n_layers));
  return plan.run(model, stage, communicator, before);
}

/// Protocols that compare with a baseline measure nothing without one. They are left out of the default, and reported
/// if the job names them.
EvaluationOptions of_one_model(EvaluationOptions options, const Communicator& communicator) {
  const std::vector<std::string> asked = options.protocols;
  options.protocols = without_comparing(std::move(options.protocols));
  if (asked.size() == options.protocols.size() || std::ranges::equal(asked, kDefaultProtocols)) return options;
  std::vector<std::string> left_out;
  std::ranges::copy_if(asked, std::back_inserter(left_out), [&](const std::string& name) {
    return std::ranges::find(options.protocols, name) == options.protocols.end();
  });
  const std::string why =
      cat("evaluate: ", join(left_out), ": it compares with an unedited model: name one with ", "--baseline DIR");
  if (options.protocols.empty() && options.side_effects.empty()) throw ConfigError(why);
  if (communicator.is_root()) log_warning("not measured: " + why);
  return options;
}

EvalReport evaluate(const JobConfig& job, const std::filesystem::path& baseline, Communicator& communicator) {
  EvalReport report;
  std::optional<ModelFiles> files, baseline_files;
  std::optional<EvaluationPlan> plan;
  communicator.run_collectively("open", [&] {
    files.emplace(open_model(job.model, job.ignore_config_keys));
    RequestFile file = load_requests(job.requests);
    if (communicator.is_root()) {
      warn_of_skipped(file.skipped);
      warn_of_texts(file.requests);
    }
    report.requests = std::move(file.requests);
    report.skipped = std::move(file.skipped);
    check_lengths(*files, report.requests);
    plan.emplace(*files->tokenizer, report.requests,
                 baseline.empty() ? of_one_model(job.evaluation, communicator) : job.evaluation,
                 files->config.max_positions);
    if (baseline.empty()) return;
    baseline_files.emplace(open_model(baseline, job.ignore_config_keys));
    check_comparable(*files, *baseline_files, job.evaluation.side_effects);
  });
  check_same(communicator, job_facts(job, *files, report.requests));
  report.content_hash = same_content_hash(communicator, files->checkpoint);
  if (baseline_files) {
    report.baseline_folder = baseline_files->checkpoint.folder();
    report.baseline_hash = same_content_hash(communicator, baseline_files->checkpoint);
    report.baseline = measure(job, *baseline_files, *plan, "evaluate baseline", nullptr, communicator);
  }
  report.evaluation =
      measure(job, *files, *plan, "evaluate", report.baseline ? &*report.baseline : nullptr, communicator);
  return report;
}

/// Returns the figures of the model, and of the baseline if there is one.
Json evaluation_json(const EvalReport& report) {
  Json metrics = Json::object();
  const auto intervals = bootstrap_intervals(report.evaluation.requests);
  for (const MetricRow& row : report.evaluation.metrics) {
    const Tally& total = report.evaluation.totals.find(row.name)->second;
    Json metric = {{"value", mean_json(total)}};
    if (report.baseline) metric["baseline"] = mean_json(report.baseline->totals.find(row.name)->second);
    metric["interval"] = interval_json(intervals, row.name);
    metric["prompts"] = total.count;
    metric.update(describe(row));
    metrics[row.name] = std::move(metric);
  }
  return metrics;
}

/// Returns the figures of one request: metric -> value.
Json values_json(const Tallies& tallies) {
  Json values = Json::object();
  for (const auto& [name, tally] : tallies) values[name] = mean_json(tally);
  return values;
}

Json server_json(const MeasuredServer& server) {
  Json not_measured = Json::object();
  for (const auto& [name, why] : server.not_measured) not_measured[name] = why;
  return {{"address", server.address},
          {"kind", server.kind},
          {"version", server.version},
          {"model", server.model},
          {"adapter", server.adapter.empty() ? Json(nullptr) : Json(server.adapter)},
          {"not_measured", std::move(not_measured)}};
}

StatisticsReport collect_statistics(const ResolvedJob& job, Communicator& communicator) {
  std::optional<ModelFiles> files;
  std::optional<JobStatistics> statistics;
  Workload work;
  communicator.run_collectively("open", [&] {
    files.emplace(open_model(job.model, job.ignore_config_keys));
    statistics.emplace(job, *files, communicator);
    work = statistics_work(job, files->config);
    statistics->describe(work);
  });
  check_same(communicator, job_facts(job, *files, {}));
  const CausalLM model = load_replica(*files, job.run, work, communicator);
  const MemoryWatch memory_watch(devices_with_memory(model.placement(), files->config.n_layers));
  const bool needs_hash = communicator.size() > 1 || job.statistics->from == StatisticsFrom::kSelf;
  statistics->prepare(model, needs_hash ? same_content_hash(communicator, files->checkpoint) : "", communicator);
  return statistics->report();
}

}  // namespace

EvalReport run_eval_job(const JobConfig& job, const std::filesystem::path& baseline, Communicator& communicator) {
  EvalReport report;
  communicator.run_collectively("eval", [&] { report = evaluate(job, baseline, communicator); });
  return report;
}

std::string to_json(const EvalReport& report, const JobConfig& job) {
  Json requests = Json::array();
  for (size_t i = 0; i < report.requests.size(); ++i) {
    Json row = {{"id", report.requests[i].id},
                {"prompt", report.requests[i].prompt.text},
                {"metrics", values_json(report.evaluation.requests[i])}};
    if (!report.evaluation.continuations.empty()) row["continuation"] = report.evaluation.continuations[i];
    if (report.baseline) {
      row["baseline"] = {{"metrics", values_json(report.baseline->requests[i])}};
      if (!report.baseline->continuations.empty()) row["baseline"]["continuation"] = report.baseline->continuations[i];
    }
    requests.push_back(std::move(row));
  }
  Json json = {{"format", "lancet-eval-1"},
               {"lancet", kVersion},
               {"model", {{"folder", job.model.string()}, {"content_hash", report.content_hash}}}};
  if (report.server) {
    json["model"]["content_hash"] = nullptr;  // the weights of the server are not known
    json["server"] = server_json(*report.server);
  }
  if (report.baseline)
    json["baseline"] = {{"folder", report.baseline_folder.string()}, {"content_hash", report.baseline_hash}};
  json["metrics"] = evaluation_json(report);
  if (!report.evaluation.side_effects.metrics.empty())
    json["side_effects"] = side_effects_json((report.baseline ? *report.baseline : report.evaluation).side_effects,
                                             report.evaluation.side_effects);
  json["skipped_records"] = skipped_json(report.skipped);
  json["requests"] = std::move(requests);
  return dump_report(json);
}

StatisticsReport run_statistics_job(const ResolvedJob& job, Communicator& communicator) {
  StatisticsReport report;
  communicator.run_collectively("stats", [&] { report = collect_statistics(job, communicator); });
  return report;
}

std::string to_json(const StatisticsReport& report) {
  Json layers = Json::array();
  for (const LayerStatisticsReport& layer : report.layers) {
    layers.push_back({{"layer", layer.layer},
                      {"tokens", layer.tokens},
                      {"mean_diagonal", layer.mean_diagonal},
                      {"from_cache", layer.from_cache},
                      {"factor_from_cache", layer.factor_from_cache},
                      {"factor_file", layer.factor_file.string()}});
    if (!layer.gradients_file.empty()) layers.back()["gradients_file"] = layer.gradients_file.string();
    if (!layer.imported_file.empty()) layers.back()["imported_from"] = import_json(layer);
  }
  return dump_report(
      {{"format", "lancet-statistics-1"}, {"corpus_exhausted", report.corpus_exhausted}, {"layers", layers}});
}

}  // namespace lancet
