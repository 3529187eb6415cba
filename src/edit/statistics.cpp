#include "lancet/edit/statistics.h"

#include <torch/types.h>

#include <algorithm>
#include <memory>

#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/kernels/gram.h"
#include "lancet/models/batching.h"
#include "lancet/models/tensor_io.h"

namespace lancet {
namespace {

/// Raised when the format or the meaning of a cached file changes.
constexpr std::string_view kCacheFormat = "lancet-covariance-1";
constexpr std::string_view kMoment = "moment";
constexpr std::string_view kTokens = "tokens";

/// Documents are gone through in chunks of this many, each sorted by length; part of the definition of the sum's order.
constexpr size_t kChunkDocuments = 1024;

std::vector<int64_t> valid_positions(const SequenceInfo& sequence) {
  const int64_t width = sequence.positions_BT.size(1);
  std::vector<int64_t> positions;
  for (size_t row = 0; row < sequence.lengths.size(); ++row)
    for (int64_t t = 0; t < sequence.lengths[row]; ++t) positions.push_back(static_cast<int64_t>(row) * width + t);
  return positions;
}

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

}  // namespace

CorpusTokens read_corpus(const Tokenizer& tokenizer, const StatisticsOptions& options, const ModelConfig& config) {
  CorpusTokens corpus;
  const size_t cap = static_cast<size_t>(std::min(options.document_tokens, config.max_positions));
  DocumentReader reader(options.corpus);
  while (corpus.tokens < options.tokens) {
    const std::optional<std::string> text = reader.next();
    if (!text) {
      corpus.exhausted = true;
      break;
    }
    std::vector<TokenId> ids = tokenizer.ids(*text);
    const size_t left = static_cast<size_t>(options.tokens - corpus.tokens);
    ids.resize(std::min({ids.size(), cap, left}));
    if (ids.empty()) continue;
    corpus.tokens += static_cast<int64_t>(ids.size());
    corpus.documents.push_back(std::move(ids));
  }
  if (corpus.tokens < config.d_ffn)
    throw ConfigError(cat("statistics: ", options.corpus.string(), ": ", corpus.tokens,
                          " tokens, but a covariance of size ", config.d_ffn,
                          " needs at least as many. Use a larger corpus or raise statistics.tokens"));
  return corpus;
}

std::vector<Covariance> collect_covariances(const CausalLM& model, const CorpusTokens& corpus,
                                            std::span<const int64_t> layers) {
  const torch::NoGradGuard no_grad;
  std::vector<std::unique_ptr<GramAccumulator>> sums;
  std::vector<int64_t> valid;
  HookSet hooks;
  for (const int64_t layer : layers) {
    sums.push_back(std::make_unique<GramAccumulator>(model.config().d_ffn, model.placement().device_of(layer)));
    hooks.observe({HookPoint::kMlpKey, layer}, [&valid, sum = sums.back().get()](const Tensor& keys_BTF) {
      const Tensor index = torch::tensor(valid, torch::kLong).to(keys_BTF.device());
      sum->add(keys_BTF.flatten(0, 1).index_select(0, index));
    });
  }
  const int64_t last = layers.back();
  hooks.stop_at({HookPoint::kMlpKey, last});

  Progress progress("statistics", corpus.tokens, "tokens");
  for (size_t begin = 0; begin < corpus.documents.size(); begin += kChunkDocuments) {
    const size_t end = std::min(begin + kChunkDocuments, corpus.documents.size());
    std::vector<int64_t> lengths;
    for (size_t i = begin; i < end; ++i) lengths.push_back(static_cast<int64_t>(corpus.documents[i].size()));
    for (const std::vector<int64_t>& rows : plan_batches(lengths, kForwardTokens)) {
      std::vector<std::vector<TokenId>> ids;
      for (const int64_t row : rows) ids.push_back(corpus.documents[begin + static_cast<size_t>(row)]);
      const TokenBatch batch = make_batch(ids);
      valid = valid_positions(batch.sequence);
      model.run_layers(model.embed(batch.ids_BT), batch.sequence, {0, last + 1}, hooks);
      progress.advance(static_cast<int64_t>(valid.size()));
    }
  }
  std::vector<Covariance> covariances;
  for (size_t i = 0; i < layers.size(); ++i) {
    const at::Device device = model.placement().solve_device(layers[i]);
    covariances.push_back({(sums[i]->sum() / static_cast<double>(sums[i]->rows())).to(device), sums[i]->rows()});
  }
  return covariances;
}

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
  std::vector<std::filesystem::path> files;
  std::vector<int64_t> missing;
  cached_layers_.clear();
  for (const int64_t layer : layers) {
    files.push_back(cache_file(layer));
    (std::filesystem::exists(files.back()) ? cached_layers_ : missing).push_back(layer);
  }
  std::vector<Covariance> fresh;
  if (!missing.empty()) fresh = collect_covariances(model_, corpus_, missing);
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
  return covariances;
}

}  // namespace lancet
