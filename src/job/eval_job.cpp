#include "lancet/job/eval_job.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/core/version.h"
#include "lancet/edit/statistics_store.h"
#include "lancet/job/model_session.h"
#include "report_json.h"

namespace lancet {

EvalReport run_eval_job(const JobConfig& job) {
  const ModelFiles files = open_model(job.model, job.ignore_config_keys);
  EvalReport report;
  report.requests = load_requests(job.requests);
  const EvaluationPlan plan(*files.tokenizer, report.requests, job.evaluation);
  const CausalLM model = load_model(files, job.run);
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
  const CorpusTokens corpus = read_corpus(*files.tokenizer, *job.statistics, files.config);
  const CausalLM model = load_model(files, job.run);
  std::vector<int64_t> layers;
  for (const WeightId& id : job.editor->targets(files.config)) layers.push_back(id.layer);
  StatisticsStore store(model, files.checkpoint, corpus, job.statistics->cache);
  store.save_every(job.statistics->save_every_s);
  const std::vector<Covariance> covariances = store.load(layers);
  StatisticsReport report{{}, corpus.exhausted};
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& cached = store.cached_layers();
    const double trace = covariances[i].moment_FF.trace().item<double>();
    report.layers.push_back({.layer = layers[i],
                             .tokens = covariances[i].tokens,
                             .mean_diagonal = trace / static_cast<double>(covariances[i].moment_FF.size(0)),
                             .from_cache = std::find(cached.begin(), cached.end(), layers[i]) != cached.end(),
                             .file = store.cache_file(layers[i])});
  }
  return report;
}

std::string to_json(const StatisticsReport& report) {
  Json layers = Json::array();
  for (const LayerStatistics& layer : report.layers)
    layers.push_back({{"layer", layer.layer},
                      {"tokens", layer.tokens},
                      {"mean_diagonal", layer.mean_diagonal},
                      {"from_cache", layer.from_cache},
                      {"file", layer.file.string()}});
  return dump_report(
      {{"format", "lancet-statistics-1"}, {"corpus_exhausted", report.corpus_exhausted}, {"layers", layers}});
}

}  // namespace lancet
