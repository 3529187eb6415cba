#include "lancet/pipeline/job_statistics.h"

#include <algorithm>
#include <span>

#include "lancet/core/hash.h"
#include "lancet/statistics/derived_store.h"
#include "lancet/statistics/entity_moments.h"
#include "lancet/statistics/null_space_store.h"
#include "lancet/statistics/statistics_store.h"

namespace lancet {

namespace fs = std::filesystem;

namespace {

/// Returns the cache file that an editor with these needs reads for one layer.
fs::path cache_file(const StatisticsOptions& options, const EditorNeeds& needs, const std::string& content_key) {
  if (needs.curvature) return spectrum_file(options.cache, content_key);
  return needs.null_space ? null_space_file(options.cache, content_key, *needs.null_space)
                          : factor_file(options.cache, content_key, options.ridge);
}

/// Wraps a text so that it is read only once, however often it is asked for: the model may have to write it, which
/// takes long.
StatisticsText read_once(StatisticsText text) {
  auto read = std::make_shared<std::optional<CorpusTokens>>();
  text.read = [read, first = std::move(text.read)](Communicator& communicator) {
    if (!*read) *read = first(communicator);
    return **read;
  };
  return text;
}

}  // namespace

JobStatistics::JobStatistics(const ResolvedJob& job, const ModelFiles& files, const Communicator& communicator,
                             std::shared_ptr<const CorpusTokens> corpus)
    : JobStatistics(job, files, communicator, target_layers(*job.editor, files.config), std::move(corpus)) {}

JobStatistics::JobStatistics(const ResolvedJob& job, const ModelFiles& files, const Communicator& communicator,
                             std::vector<int64_t> layers, std::shared_ptr<const CorpusTokens> corpus)
    : job_(job),
      files_(files),
      is_root_(communicator.is_root()),
      layers_(std::move(layers)),
      corpus_(std::move(corpus)) {
  const StatisticsOptions& options = *job.statistics;
  switch (options.from) {
    case StatisticsFrom::kCorpus:
      if (!corpus_)
        corpus_ = std::make_shared<const CorpusTokens>(is_root_ ? read_corpus(*files.tokenizer, options, files.config)
                                                                : CorpusTokens{});
      break;
    case StatisticsFrom::kSelf:
      plan_ = plan_self_corpus(*files.tokenizer, files.config, options, job.run.seed);
      break;
    case StatisticsFrom::kImport:
      imported_ = std::make_shared<ImportedStatistics>(options.import, layers_, files.config);
      if (job_.needs.curvature)
        imported_gradients_ = std::make_shared<ImportedStatistics>(options.import_gradients, layers_, files.config,
                                                                   MomentSide::kGradients);
      if (is_root_) imported_->check();
      if (is_root_ && imported_gradients_) imported_gradients_->check();
      break;
    case StatisticsFrom::kImportedNullSpace:
      projections_.emplace(options.null_space, layers_, files.config);
      if (is_root_) projections_->check();
      break;
  }
  if (job_.needs.entity_weight == 0 || !is_root_) return;
  std::optional<std::string> chat;
  if (const ContextOptions* contexts = job.editor->contexts())
    chat = chat_context(*contexts, files.checkpoint.folder(), *files.tokenizer);
  entities_ = entity_documents(*files.tokenizer, chat.value_or(""));
}

void JobStatistics::describe(Workload& work) const {
  if (job_.statistics->from != StatisticsFrom::kCorpus || !is_root_) return;
  work.statistics_tokens = corpus_->tokens;
  work.document_tokens = 0;
  for (const std::vector<TokenId>& document : corpus_->documents)
    work.document_tokens = std::max(work.document_tokens, static_cast<int64_t>(document.size()));
}

StatisticsText JobStatistics::open_text(const CausalLM& model, const std::string& content_hash) const {
  if (imported_) return {};
  if (job_.statistics->from == StatisticsFrom::kSelf) return read_once(sampled_text(model, content_hash, plan_));
  return text_of(*corpus_);
}

std::shared_ptr<MomentSource> JobStatistics::open_moments(const CausalLM& model, const StatisticsText& text,
                                                          MomentSide side) const {
  if (imported_) return side == MomentSide::kKeys ? imported_ : imported_gradients_;
  return open_store(model, text, side);
}

std::shared_ptr<StatisticsStore> JobStatistics::open_store(const CausalLM& model, StatisticsText text,
                                                           MomentSide side) const {
  auto store =
      std::make_shared<StatisticsStore>(model, files_.checkpoint, std::move(text), job_.statistics->cache, side);
  store->share_hashes(hashes_);
  store->save_every(job_.statistics->save_every_s);
  return store;
}

StatisticsText JobStatistics::entity_text() const {
  StatisticsText text = text_of(entities_);
  text.content = "names of other subjects";
  return text;
}

/// Returns the moments of `text` and of entities, if the editor needs these.
std::shared_ptr<MomentSource> JobStatistics::with_entities(const CausalLM& model,
                                                           std::shared_ptr<MomentSource> text) const {
  if (job_.needs.entity_weight == 0) return text;
  return std::make_shared<MixedMoments>(std::move(text), open_store(model, entity_text(), MomentSide::kKeys),
                                        job_.needs.entity_weight);
}

bool JobStatistics::may_be_cached(const ResolvedJob& job, const ModelConfig& config) {
  const std::string end = cache_file(*job.statistics, job.needs, "").filename().string();
  std::error_code absent;
  size_t found = 0;
  for (fs::directory_iterator file(job.statistics->cache, absent), none; !absent && file != none;
       file.increment(absent))
    if (file->path().filename().string().ends_with(end)) ++found;
  return found >= target_layers(*job.editor, config).size() * (job.needs.curvature ? 2 : 1);
}

bool JobStatistics::is_cached(const Checkpoint& checkpoint) const {
  if (projections_) return true;
  if (!may_be_cached(job_, files_.config)) return false;
  const StatisticsOptions& options = *job_.statistics;
  const QuantiseRule rule_of_weights = quantise_rule(job_, files_.config);
  const std::string rule_key = rule_of_weights.key(files_.config);
  const std::string text_key = options.from == StatisticsFrom::kSelf
                                   ? sampled_text_key(checkpoint.content_hash(), rule_key, plan_)
                               : options.from == StatisticsFrom::kCorpus ? text_of(*corpus_).content_key
                                                                         : "";
  const auto keys_of = [&](std::string text) {
    CovarianceKeys keys(std::move(text), files_.checkpoint, files_.config,
                        to_scalar_type(job_.run.dtype.value_or(files_.config.dtype)), rule_of_weights);
    keys.share_hashes(hashes_);
    return keys;
  };
  const CovarianceKeys keys = keys_of(text_key), entity_keys = keys_of(entity_text().content_key);
  const auto is_there = [&](const std::shared_ptr<ImportedStatistics>& imported, int64_t layer, MomentSide side) {
    std::string key = imported ? imported->content_key(layer) : keys.of(layer, side);
    if (job_.needs.entity_weight > 0)
      key = MixedMoments::content_key(key, entity_keys.of(layer), job_.needs.entity_weight);
    return fs::exists(cache_file(options, job_.needs, key));
  };
  return std::all_of(layers_.begin(), layers_.end(), [&](int64_t layer) {
    return is_there(imported_, layer, MomentSide::kKeys) &&
           (!job_.needs.curvature || is_there(imported_gradients_, layer, MomentSide::kGradients));
  });
}

void JobStatistics::prepare(const CausalLM& model, const std::string& content_hash, Communicator& communicator) {
  placement_ = &model.placement();
  if (projections_) return projections_->keep_in(kept_);
  const StatisticsOptions& options = *job_.statistics;
  const StatisticsText text = open_text(model, content_hash);
  moments_ = with_entities(model, open_moments(model, text, MomentSide::kKeys));
  const auto spectra = [&](MomentSource& moments, MomentSide side) {
    return std::make_unique<SpectrumStore>(moments, model.placement(), files_.config, options.cache, side);
  };
  if (job_.needs.curvature)
    derived_ = spectra(*moments_, MomentSide::kKeys);
  else if (job_.needs.null_space)
    derived_ = std::make_unique<NullSpaceStore>(*moments_, model.placement(), files_.config, options.cache,
                                                *job_.needs.null_space);
  else
    derived_ = std::make_unique<FactorStore>(*moments_, model.placement(), files_.config, options.cache, options.ridge);
  derived_->keep_in(kept_);
  derived_->prepare(layers_, communicator);
  if (!job_.needs.curvature) return;
  gradients_ = open_moments(model, text, MomentSide::kGradients);
  bends_ = spectra(*gradients_, MomentSide::kGradients);
  bends_->keep_in(kept_);
  bends_->prepare(layers_, communicator);
}

void JobStatistics::prepare_moments(Communicator& communicator) { moments_->prepare(layers_, communicator); }

Tensor JobStatistics::moment(int64_t layer) const { return moments_->load(layer).moment_FF; }

LayerStatistics JobStatistics::algebra() const {
  if (projections_) return {.null_space = [this](int64_t layer) { return projections_->load(layer, *placement_); }};
  if (const auto* spaces = dynamic_cast<const NullSpaceStore*>(derived_.get()))
    return {.null_space = [spaces](int64_t layer) { return spaces->load(layer); }};
  if (const auto* spectra = dynamic_cast<const SpectrumStore*>(derived_.get()))
    return {.curvature = [this, spectra](int64_t layer) {
      return Curvature{spectra->load(layer), bends_->load(layer)};
    }};
  const auto* factors = dynamic_cast<const FactorStore*>(derived_.get());
  return {.factor = [factors](int64_t layer) { return factors->load(layer); }};
}

std::string JobStatistics::content_key() const {
  if (projections_) return projections_->file_hash();
  ContentHash hash;
  for (const int64_t layer : layers_) hash.add(layer).add(moments_->content_key(layer));
  if (gradients_)
    for (const int64_t layer : layers_) hash.add(gradients_->content_key(layer));
  const double ridge = job_.statistics->ridge;
  return hash.add(std::as_bytes(std::span(&ridge, 1))).hex();
}

StatisticsReport JobStatistics::report() const {
  if (!is_root_) return {};
  if (projections_) return report_projections();
  StatisticsReport report{{}, derived_->collect_seconds(), corpus_ != nullptr && corpus_->exhausted};
  if (bends_) report.collect_seconds += bends_->collect_seconds();
  const auto* spaces = dynamic_cast<const NullSpaceStore*>(derived_.get());
  for (const int64_t layer : layers_) {
    const MomentFacts facts = derived_->facts(layer);
    report.layers.push_back(
        {.layer = layer,
         .tokens = facts.tokens,
         .mean_diagonal = facts.mean_diagonal,
         .from_cache = derived_->moments_from_cache(layer) && (!bends_ || bends_->moments_from_cache(layer)),
         .factor_from_cache = derived_->from_cache(layer) && (!bends_ || bends_->from_cache(layer)),
         .null_space_below = spaces ? std::optional(spaces->below(layer)) : std::nullopt,
         .factor_file = derived_->cache_file(layer),
         .gradients_file = bends_ ? bends_->cache_file(layer) : "",
         .imported_file = imported_ ? imported_->file(layer) : "",
         .imported_hash = imported_ ? imported_->file_hash(layer) : ""});
  }
  return report;
}

StatisticsReport JobStatistics::report_projections() const {
  StatisticsReport report;
  for (const int64_t layer : layers_)
    report.layers.push_back({.layer = layer,
                             .from_cache = true,
                             .factor_from_cache = true,
                             .factor_file = projections_->file(),
                             .imported_file = projections_->file(),
                             .imported_hash = projections_->file_hash()});
  return report;
}

}  // namespace lancet
