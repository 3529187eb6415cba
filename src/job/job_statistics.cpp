#include "job_statistics.h"

#include "lancet/edit/factor_store.h"
#include "lancet/edit/null_space_store.h"
#include "lancet/edit/statistics_store.h"

namespace lancet {

JobStatistics::JobStatistics(const JobConfig& job, const ModelFiles& files) : job_(job), files_(files) {
  for (const WeightId& id : job.editor->targets(files.config)) layers_.push_back(id.layer);
  const StatisticsOptions& options = *job.statistics;
  switch (options.from) {
    case StatisticsFrom::kCorpus:
      corpus_ = read_corpus(*files.tokenizer, options, files.config);
      break;
    case StatisticsFrom::kSelf:
      plan_ = plan_self_corpus(*files.tokenizer, files.config, options, job.run.seed);
      break;
    case StatisticsFrom::kImport:
      imported_ = std::make_shared<ImportedStatistics>(options.import, layers_, files.config.d_ffn);
      break;
  }
}

std::shared_ptr<MomentSource> JobStatistics::open_moments(const CausalLM& model) const {
  if (imported_) return imported_;
  StatisticsText text =
      job_.statistics->from == StatisticsFrom::kSelf ? sampled_text(model, files_.checkpoint, plan_) : text_of(corpus_);
  auto store = std::make_shared<StatisticsStore>(model, files_.checkpoint, std::move(text), job_.statistics->cache);
  store->save_every(job_.statistics->save_every_s);
  return store;
}

void JobStatistics::prepare(const CausalLM& model) {
  const StatisticsOptions& options = *job_.statistics;
  moments_ = open_moments(model);
  const int64_t size = files_.config.d_ffn;
  if (const std::optional<double> threshold = job_.editor->needs().null_space_below)
    derived_ = std::make_unique<NullSpaceStore>(*moments_, model.placement(), size, options.cache, *threshold);
  else
    derived_ = std::make_unique<FactorStore>(*moments_, model.placement(), size, options.cache, options.ridge);
  derived_->prepare(layers_);
}

LayerAlgebra JobStatistics::algebra() const {
  if (const auto* spaces = dynamic_cast<const NullSpaceStore*>(derived_.get()))
    return {.null_space = [spaces](int64_t layer) { return spaces->load(layer); }};
  const auto* factors = dynamic_cast<const FactorStore*>(derived_.get());
  return {.factor = [factors](int64_t layer) { return factors->load(layer); }};
}

StatisticsReport JobStatistics::report() const {
  StatisticsReport report{{}, corpus_.exhausted};
  for (const int64_t layer : layers_) {
    const MomentFacts facts = derived_->facts(layer);
    report.layers.push_back({.layer = layer,
                             .tokens = facts.tokens,
                             .mean_diagonal = facts.mean_diagonal,
                             .from_cache = derived_->moments_from_cache(layer),
                             .factor_from_cache = derived_->from_cache(layer),
                             .factor_file = derived_->cache_file(layer),
                             .imported_file = imported_ ? imported_->file(layer) : "",
                             .imported_hash = imported_ ? imported_->file_hash(layer) : ""});
  }
  return report;
}

}  // namespace lancet
