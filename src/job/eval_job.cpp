#include "lancet/job/eval_job.h"

#include "job_statistics.h"
#include "lancet/core/version.h"
#include "lancet/job/model_session.h"
#include "report_json.h"

namespace lancet {

EvalReport run_eval_job(const JobConfig& job) {
  const ModelFiles files = open_model(job.model, job.ignore_config_keys);
  EvalReport report;
  report.requests = load_requests(job.requests);
  const EvaluationPlan plan(*files.tokenizer, report.requests, job.evaluation);
  const CausalLM model = load_model(files, job.run, evaluation_work(job.run, files.config, plan.size()));
  report.evaluation = plan.run(model, "evaluate");
  report.content_hash = files.checkpoint.content_hash();
  return report;
}

std::string to_json(const EvalReport& report, const JobConfig& job) {
  Json metrics = Json::object();
  for (const MetricRow& row : metric_table()) {
    const auto total = report.evaluation.totals.find(row.name);
    if (total == report.evaluation.totals.end()) continue;
    metrics[std::string(row.name)] = {
        {"value", share_json(total->second)}, {"prompts", total->second.prompts}, {"protocol", row.protocol}};
  }
  Json requests = Json::array();
  for (size_t i = 0; i < report.requests.size(); ++i) {
    Json values = Json::object();
    for (const auto& [name, tally] : report.evaluation.requests[i]) values[name] = share_json(tally);
    Json row = {
        {"id", report.requests[i].id}, {"prompt", report.requests[i].prompt.text}, {"metrics", std::move(values)}};
    if (!report.evaluation.continuations.empty()) row["continuation"] = report.evaluation.continuations[i];
    requests.push_back(std::move(row));
  }
  const Json json = {{"format", "lancet-eval-1"},
                     {"lancet", kVersion},
                     {"model", {{"folder", job.model.string()}, {"content_hash", report.content_hash}}},
                     {"metrics", std::move(metrics)},
                     {"requests", std::move(requests)}};
  return dump_report(json);
}

StatisticsReport run_statistics_job(const JobConfig& job) {
  const ModelFiles files = open_model(job.model, job.ignore_config_keys);
  JobStatistics statistics(job, files);
  JobWork work = statistics_work(job, files.config);
  statistics.describe(work);
  const CausalLM model = load_model(files, job.run, work);
  statistics.prepare(model);
  return statistics.report();
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
