#include "job_statistics.h"

#include "lancet/edit/statistics_store.h"

namespace lancet {

JobStatistics::JobStatistics(const JobConfig& job, const ModelFiles& files) : job_(job), files_(files) {
  for (const WeightId& id : job.editor->targets(files.config)) layers_.push_back(id.layer);
  corpus_ = read_corpus(*files.tokenizer, *job.statistics, files.config);
}

void JobStatistics::prepare(const CausalLM& model) {
  const StatisticsOptions& options = *job_.statistics;
  moments_ = std::make_unique<StatisticsStore>(model, files_.checkpoint, corpus_, options.cache);
  factors_ =
      std::make_unique<FactorStore>(*moments_, model.placement(), files_.config.d_ffn, options.cache, options.ridge);
  factors_->prepare(layers_);
}

StatisticsReport JobStatistics::report() const {
  StatisticsReport report{{}, corpus_.exhausted};
  for (const int64_t layer : layers_) {
    const FactorFacts facts = factors_->facts(layer);
    report.layers.push_back({.layer = layer,
                             .tokens = facts.tokens,
                             .mean_diagonal = facts.mean_diagonal,
                             .from_cache = factors_->moments_from_cache(layer),
                             .factor_from_cache = factors_->from_cache(layer),
                             .factor_file = factors_->cache_file(layer)});
  }
  return report;
}

}  // namespace lancet
