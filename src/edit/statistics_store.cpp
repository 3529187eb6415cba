#include "lancet/edit/statistics_store.h"

#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

/// Raised when the format or the meaning of a cached file changes.
constexpr std::string_view kCacheFormat = "lancet-covariance-2";
constexpr std::string_view kMoment = "moment";
constexpr std::string_view kTokens = "tokens";

std::string corpus_key(const CorpusTokens& corpus) {
  ContentHash hash;
  for (const auto& document : corpus.documents) hash.add(std::as_bytes(std::span(document)));
  return hash.hex();
}

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

void write_covariance(const std::filesystem::path& path, const Covariance& covariance) {
  const Tensor host = covariance.moment_FF.to(Placement::host()).contiguous();
  const TensorSource source = to_source(std::string(kMoment), host);
  std::filesystem::create_directories(path.parent_path());
  write_safetensors(path, std::span(&source, 1),
                    {{"format", std::string(kCacheFormat)}, {std::string(kTokens), std::to_string(covariance.tokens)}});
}

Covariance read_covariance(const std::filesystem::path& path, int64_t size, at::Device device) {
  const SafetensorsReader file = SafetensorsReader::open(path);
  const TensorView view = file.view(kMoment);
  const std::vector<int64_t> expected{size, size};
  if (view.dtype != DType::kF64 || view.shape != expected || !file.metadata().contains(std::string(kTokens)))
    throw CheckpointError(cat(path.string(), ": not a cached covariance of size ", size, ": remove the file"));
  // copied: the cache file may be replaced while the covariance is in use
  Tensor moment = to_tensor(view).to(device, at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  return {std::move(moment), std::stoll(file.metadata().at(std::string(kTokens)))};
}

/// Of one pass over several layers. `chunk_tokens` orders its sums.
std::string pass_key(std::span<const std::filesystem::path> cache_files, int64_t chunk_tokens) {
  ContentHash hash;
  hash.add(chunk_tokens);
  for (const std::filesystem::path& file : cache_files) hash.add(file.filename().string());
  return hash.hex();
}

}  // namespace

StatisticsStore::StatisticsStore(const CausalLM& model, const Checkpoint& checkpoint, const CorpusTokens& corpus,
                                 std::filesystem::path cache)
    : model_(model),
      checkpoint_(checkpoint),
      corpus_(corpus),
      cache_(std::move(cache)),
      corpus_key_(corpus_key(corpus)) {}

std::filesystem::path StatisticsStore::cache_file(int64_t layer) const {
  ContentHash hash;
  hash.add(kCacheFormat)
      .add(corpus_key_)
      .add(checkpoint_.config_text())
      .add(at::toString(model_.placement().weight_dtype()))
      .add(layer);
  for (const WeightSpec& spec : resolve_weights(model_.config(), checkpoint_))
    if (shapes_keys(spec.id, layer)) hash.add(checkpoint_.view(spec.stored_name).bytes);
  return cache_ / (hash.hex() + ".safetensors");
}

std::vector<Covariance> StatisticsStore::load(std::span<const int64_t> layers) {
  std::vector<std::filesystem::path> files, missing_files;
  std::vector<int64_t> missing;
  cached_layers_.clear();
  for (const int64_t layer : layers) {
    files.push_back(cache_file(layer));
    const bool cached = std::filesystem::exists(files.back());
    (cached ? cached_layers_ : missing).push_back(layer);
    if (!cached) missing_files.push_back(files.back());
  }
  const int64_t chunk_tokens = statistics_chunk_tokens(model_.config(), model_.placement().weight_dtype());
  PartialSums saves(cache_, pass_key(missing_files, chunk_tokens), save_every_s_);
  std::vector<Covariance> fresh;
  if (!missing.empty()) fresh = collect_covariances(model_, corpus_, missing, &saves);
  std::vector<Covariance> covariances;
  size_t next_fresh = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (next_fresh < missing.size() && missing[next_fresh] == layers[i]) {
      write_covariance(files[i], fresh[next_fresh]);
      covariances.push_back(std::move(fresh[next_fresh++]));
    } else {
      covariances.push_back(
          read_covariance(files[i], model_.config().d_ffn, model_.placement().solve_device(layers[i])));
    }
  }
  if (!missing.empty()) saves.remove();  // only now that the cache has the results
  return covariances;
}

}  // namespace lancet
