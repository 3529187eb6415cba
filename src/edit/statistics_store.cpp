#include "lancet/edit/statistics_store.h"

#include <torch/types.h>

#include "lancet/core/hash.h"
#include "matrix_file.h"

namespace lancet {
namespace {

constexpr MatrixKind kCovariance{"lancet-covariance-2", "moment", "covariance"};
constexpr const char* kTokens = "tokens";

/// Whether a layer's keys depend on this weight.
bool shapes_keys(WeightId id, int64_t layer) {
  switch (id.kind) {
    case WeightKind::kEmbedding:
      return true;
    case WeightKind::kFinalNorm:
    case WeightKind::kHead:
      return false;
    case WeightKind::kDown:
    case WeightKind::kDownBias:
      return id.layer < layer;
    default:
      return id.layer <= layer;
  }
}

/// Of one pass over several layers. `chunk_tokens` orders its sums.
std::string pass_key(std::span<const std::filesystem::path> cache_files, int64_t chunk_tokens) {
  ContentHash hash;
  hash.add(chunk_tokens);
  for (const std::filesystem::path& file : cache_files) hash.add(file.filename().string());
  return hash.hex();
}

}  // namespace

StatisticsText text_of(const CorpusTokens& corpus) {
  ContentHash hash;
  for (const auto& document : corpus.documents) hash.add(std::as_bytes(std::span(document)));
  return {hash.hex(), [&corpus] { return corpus; }};
}

StatisticsStore::StatisticsStore(const CausalLM& model, const Checkpoint& checkpoint, StatisticsText text,
                                 std::filesystem::path cache)
    : model_(model),
      text_(std::move(text)),
      keys_(text_.content_key, checkpoint, model.config(), model.placement().weight_dtype()),
      cache_(std::move(cache)) {}

std::string CovarianceKeys::of(int64_t layer) const {
  ContentHash hash;
  hash.add(kCovariance.format).add(text_key_).add(checkpoint_.config_text()).add(at::toString(dtype_)).add(layer);
  for (const WeightSpec& spec : resolve_weights(config_, checkpoint_)) {
    if (!shapes_keys(spec.id, layer)) continue;
    std::string& weight = weight_hashes_[spec.stored_name];
    if (weight.empty()) weight = ContentHash().add(checkpoint_.view(spec.stored_name).bytes).hex();
    hash.add(weight);
  }
  return hash.hex();
}

std::filesystem::path StatisticsStore::cache_file(int64_t layer) const {
  return cache_ / (content_key(layer) + ".safetensors");
}

void StatisticsStore::prepare(std::span<const int64_t> layers) {
  std::vector<int64_t> missing;
  for (const int64_t layer : layers)
    if (!std::filesystem::exists(cache_file(layer))) missing.push_back(layer);
  collected_ = {missing.begin(), missing.end()};
  if (missing.empty()) return;
  std::vector<std::filesystem::path> files;
  for (const int64_t layer : missing) files.push_back(cache_file(layer));
  const int64_t chunk_tokens = statistics_chunk_tokens(model_.config(), model_.placement().weight_dtype());
  PartialSums saves(cache_, pass_key(files, chunk_tokens), save_every_s_);
  const std::vector<Covariance> fresh = collect_covariances(model_, text_.read(), missing, &saves);
  for (size_t i = 0; i < missing.size(); ++i)
    write_matrix(files[i], kCovariance, fresh[i].moment_FF, {{kTokens, std::to_string(fresh[i].tokens)}});
  saves.remove();  // only now that the cache has the results
}

Covariance StatisticsStore::load(int64_t layer) const {
  const MatrixFile file = map_matrix(cache_file(layer), kCovariance, model_.config().d_ffn);
  // copied: callers change it
  Tensor moment_FF =
      file.matrix.to(model_.placement().solve_device(layer), at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  return {std::move(moment_FF), static_cast<int64_t>(file.number(kTokens))};
}

std::vector<Covariance> StatisticsStore::load(std::span<const int64_t> layers) {
  prepare(layers);
  std::vector<Covariance> covariances;
  for (const int64_t layer : layers) covariances.push_back(load(layer));
  return covariances;
}

}  // namespace lancet
