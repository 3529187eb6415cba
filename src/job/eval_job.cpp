#include "lancet/job/eval_job.h"

#include <optional>

#include "job_statistics.h"
#include "lancet/core/version.h"
#include "lancet/job/model_session.h"
#include "lancet/runtime/memory_watch.h"
#include "report_json.h"
#include "same_job.h"

namespace lancet {

namespace {

EvalReport evaluate(const JobConfig& job, Communicator& communicator) {
  EvalReport report;
  std::optional<ModelFiles> files;
  std::optional<EvaluationPlan> plan;
  communicator.together("open", [&] {
    files.emplace(open_model(job.model, job.ignore_config_keys));
    RequestFile file = load_requests(job.requests);
    if (communicator.is_root()) warn_of_skipped(file.skipped);
    report.requests = std::move(file.requests);
    report.skipped = std::move(file.skipped);
    plan.emplace(*files->tokenizer, report.requests, job.evaluation);
  });
  check_same(communicator, job_facts(job, *files, report.requests));
  const CausalLM model =
      load_replica(*files, job.run, evaluation_work(job.run, files->config, plan->size()), communicator);
  const MemoryWatch memory_watch(devices_with_memory(model.placement(), files->config.n_layers));
  report.content_hash = same_content_hash(communicator, files->checkpoint);
  report.evaluation = plan->run(model, "evaluate", communicator);
  return report;
}

StatisticsReport collect_statistics(const JobConfig& job, Communicator& communicator) {
  std::optional<ModelFiles> files;
  std::optional<JobStatistics> statistics;
  JobWork work;
  communicator.together("open", [&] {
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

EvalReport run_eval_job(const JobConfig& job, Communicator& communicator) {
  EvalReport report;
  communicator.together("eval", [&] { report = evaluate(job, communicator); });
  return report;
}

std::string to_json(const EvalReport& report, const JobConfig& job) {
  Json metrics = Json::object();
  const auto intervals = bootstrap_intervals(report.evaluation.requests);
  for (const MetricRow& row : report.evaluation.metrics) {
    const Tally& total = report.evaluation.totals.find(row.name)->second;
    Json metric = {
        {"value", mean_json(total)}, {"interval", interval_json(intervals, row.name)}, {"prompts", total.count}};
    metric.update(describe(row));
    metrics[row.name] = std::move(metric);
  }
  Json requests = Json::array();
  for (size_t i = 0; i < report.requests.size(); ++i) {
    Json values = Json::object();
    for (const auto& [name, tally] : report.evaluation.requests[i]) values[name] = mean_json(tally);
    Json row = {
        {"id", report.requests[i].id}, {"prompt", report.requests[i].prompt.text}, {"metrics", std::move(values)}};
    if (!report.evaluation.continuations.empty()) row["continuation"] = report.evaluation.continuations[i];
    requests.push_back(std::move(row));
  }
  const Json json = {{"format", "lancet-eval-1"},
                     {"lancet", kVersion},
                     {"model", {{"folder", job.model.string()}, {"content_hash", report.content_hash}}},
                     {"metrics", std::move(metrics)},
                     {"skipped_records", skipped_json(report.skipped)},
                     {"requests", std::move(requests)}};
  return dump_report(json);
}

StatisticsReport run_statistics_job(const JobConfig& job, Communicator& communicator) {
  StatisticsReport report;
  communicator.together("stats", [&] { report = collect_statistics(job, communicator); });
  return report;
}

std::string to_json(const StatisticsReport& report) {
  Json layers = Json::array();
  for (const LayerStatistics& layer : report.layers) {
    layers.push_back({{"layer", layer.layer},
                      {"tokens", layer.tokens},
                      {"mean_diagonal", layer.mean_diagonal},
                      {"from_cache", layer.from_cache},
                      {"factor_from_cache", layer.factor_from_cache},
                      {"factor_file", layer.factor_file.string()}});
    if (!layer.imported_file.empty()) layers.back()["imported_from"] = import_json(layer);
  }
  return dump_report(
      {{"format", "lancet-statistics-1"}, {"corpus_exhausted", report.corpus_exhausted}, {"layers", layers}});
}

}  // namespace lancet
