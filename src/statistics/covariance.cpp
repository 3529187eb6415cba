#include "lancet/statistics/covariance.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/gram.h"
#include "lancet/models/batching.h"
#include "lancet/models/finite.h"
#include "lancet/models/memory.h"
#include "lancet/runtime/collectives.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/stage_turns.h"

namespace lancet {
namespace {

TokenBatch make_chunk(const CorpusTokens& corpus, std::span<const int64_t> documents) {
  std::vector<std::span<const TokenId>> parts;
  for (const int64_t document : documents) parts.emplace_back(corpus.documents[static_cast<size_t>(document)]);
  return make_packed_batch(parts);
}

/// One layer's sum, or those of its experts.
class LayerSums {
 public:
  LayerSums(KeyShape keys, const Placement& placement, int64_t layer) {
    for (int64_t expert = 0; expert < keys.experts; ++expert)
      sums_.emplace_back(keys.width, placement.device_of(layer), placement.solve_device(layer));
  }

  void add(const Tensor& keys_NF, RowCounts& counts) {
    const std::vector<Tensor> parts = keys_NF.chunk(std::ssize(sums_), 1);
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i].add(parts[i], counts);
  }

  int64_t rows() const { return sums_.front().rows(); }
  Tensor panels() const {
    std::vector<Tensor> blocks;
    for (const GramAccumulator& sum : sums_) blocks.push_back(sum.panels());
    return together(blocks);
  }
  void restore(const Tensor& panels, int64_t rows) {
    if (sums_.size() == 1) return sums_.front().restore(panels, rows);
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i].restore(panels[static_cast<int64_t>(i)].clone(), rows);
  }
  void sum_over(Communicator& communicator) {
    for (GramAccumulator& sum : sums_) sum.sum_over(communicator);
  }
  Tensor take_mean() && {
    std::vector<Tensor> blocks;
    for (GramAccumulator& sum : sums_) blocks.push_back(std::move(sum).take_mean());
    return together(blocks);
  }

 private:
  /// One matrix is not copied.
  static Tensor together(const std::vector<Tensor>& blocks) {
    return blocks.size() == 1 ? blocks.front() : torch::stack(blocks);
  }

  std::vector<GramAccumulator> sums_;
};

/// The sums of all layers.
class Sums {
 public:
  Sums(const CausalLM& model, std::span<const int64_t> layers) {
    for (const int64_t layer : layers) sums_.emplace_back(model.config().key_shape(layer), model.placement(), layer);
  }

  /// Adds each layer's keys of one chunk as they pass by. The hooks borrow this object and the chunk's counts.
  HookSet hooks(std::span<const int64_t> layers, RowCounts& counts) {
    HookSet hooks;
    for (size_t i = 0; i < layers.size(); ++i)
      hooks.observe({HookPoint::kMlpKey, layers[i]},
                    [&sum = sums_[i], &counts](const Tensor& keys_1TF) { sum.add(keys_1TF.flatten(0, 1), counts); });
    hooks.stop_at({HookPoint::kMlpKey, layers.back()});
    return hooks;
  }

  SavedPass after(int64_t chunks) const {
    SavedPass pass{chunks, rows(), {}};
    for (const LayerSums& sum : sums_) pass.sums_FF.push_back(sum.panels());
    return pass;
  }

  int64_t rows() const { return sums_.front().rows(); }

  void restore(const SavedPass& pass) {
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i].restore(pass.sums_FF[i], pass.tokens);
  }

  void sum_over(Communicator& communicator) {
    for (LayerSums& sum : sums_) sum.sum_over(communicator);
  }

  std::vector<Covariance> take() && {
    std::vector<Covariance> covariances;
    for (LayerSums& sum : sums_) {
      const int64_t tokens = sum.rows();
      covariances.push_back({std::move(sum).take_mean(), tokens});
    }
    return covariances;
  }

 private:
  std::vector<LayerSums> sums_;
};

/// The plan depends on the corpus and the chunk's size alone: it decides the order of the sums, and so their last bits.
std::vector<std::vector<int64_t>> own_chunks(const CausalLM& model, const CorpusTokens& corpus, int64_t chunk_tokens,
                                             const Communicator& communicator) {
  if (chunk_tokens == 0) chunk_tokens = statistics_chunk_tokens(model.config(), model.placement().weight_dtype());
  auto chunks = plan_packs(corpus.documents, chunk_tokens, longest_usual_text(model.config()));
  std::vector<std::vector<int64_t>> own;
  for (const size_t i : own_pieces(communicator, chunks.size())) own.push_back(std::move(chunks[i]));
  return own;
}

int64_t tokens_of(const CorpusTokens& corpus, const std::vector<std::vector<int64_t>>& chunks) {
  int64_t tokens = 0;
  for (const std::vector<int64_t>& documents : chunks)
    for (const int64_t document : documents)
      tokens += static_cast<int64_t>(corpus.documents[static_cast<size_t>(document)].size());
  return tokens;
}

/// Largest chunk of an accelerator: as many rows as one product of GramAccumulator's takes.
constexpr int64_t kMostChunkTokens = 16384;

int64_t chunk_token_bytes(const ModelConfig& config, at::ScalarType dtype) {
  // At the MLP's key: gate, up, the activated gate and the key, and the residual stream with its normed copies; then
  // the key in f32 for its products, as it is and counted. 14336 x 4096: 442 kB a token in f32, 2048 tokens; 279 kB in
  // bf16, 3584 tokens.
  const int64_t d_key = config.largest_keys().size();
  return (4 * d_key + 6 * config.d_model) * static_cast<int64_t>(at::elementSize(dtype)) + 8 * d_key;
}

std::vector<KeyShape> key_shapes(const ModelConfig& config, std::span<const int64_t> layers) {
  std::vector<KeyShape> shapes;
  for (const int64_t layer : layers) shapes.push_back(config.key_shape(layer));
  return shapes;
}

void collect_own_chunks(const CausalLM& model, const CorpusTokens& corpus,
                        const std::vector<std::vector<int64_t>>& chunks, std::span<const int64_t> layers, Sums& sums,
                        PartialSums* saves) {
  const int64_t tokens = tokens_of(corpus, chunks);
  Progress progress("statistics", tokens, "tokens", saves != nullptr ? kOncePerModel : "");
  progress.measure_by("", static_cast<int64_t>(chunks.size()));  // documents that begin alike cost less a token
  int64_t begin = 0;
  if (const auto saved =
          saves != nullptr ? saves->load(key_shapes(model.config(), layers)) : std::optional<SavedPass>()) {
    sums.restore(*saved);
    begin = saved->chunks;
    progress.expect_pieces(-begin);
    progress.skip(saved->tokens);
    log_line(
        cat("statistics: going on from ", saved->tokens, " of ", tokens, " tokens saved in ", saves->file().string()));
  }
  // In turns, so that every layer's sum takes the chunks in their order.
  const auto add_chunk = [&](int64_t i, StageTurn& turn) {
    const torch::NoGradGuard no_grad_in_this_thread;
    TokenBatch chunk = make_chunk(corpus, chunks[static_cast<size_t>(i)]);
    chunk.sequence.turn = &turn;
    RowCounts counts(token_counts(chunk.sequence));
    model.run_layers(model.embed(chunk.ids_BT, chunk.sequence), chunk.sequence, {0, layers.back() + 1},
                     sums.hooks(layers, counts));
    progress.advance_pieces();
    progress.advance(counts.total(chunk.ids_BT.numel()));
  };
  const auto n_chunks = static_cast<int64_t>(chunks.size());
  while (begin < n_chunks) {
    begin =
        run_in_turns(model.placement(), begin, n_chunks, add_chunk, [&] { return saves != nullptr && saves->due(); });
    if (begin < n_chunks || (saves != nullptr && saves->due())) saves->save(sums.after(begin));
  }
}

}  // namespace

int64_t statistics_chunk_tokens(const ModelConfig& config, at::ScalarType dtype) {
  constexpr int64_t kMostBytes = 1'000'000'000, kFewest = 256;
  return std::clamp(kMostBytes / chunk_token_bytes(config, dtype) / kFewest * kFewest, kFewest, kForwardTokens);
}

int64_t statistics_chunk_tokens(const ModelConfig& config, const Placement& placement,
                                std::span<const int64_t> layers) {
  const int64_t usual = statistics_chunk_tokens(config, placement.weight_dtype());
  if (placement.is_host_only() || layers.empty()) return usual;
  int64_t room = DeviceBudget::kUnknown;  // the least, beside the sums
  for (const Stage& stage : placement.stages()) {
    if (stage.begin > layers.back()) break;
    const std::optional<int64_t> planned = placement.room_bytes(stage.device);
    const bool is_known = planned && *planned < DeviceBudget::kUnknown / 2 && stage.device != Placement::host();
    if (!is_known || holds_scores(config, stage.device, placement.weight_dtype())) return usual;
    int64_t sums = 0;
    for (const int64_t layer : layers)
      if (placement.stage_of(layer) == placement.stage_of(stage.begin) && placement.solve_device(layer) == stage.device)
        sums += 8 * config.key_shape(layer).moments();
    room = std::min(room, *planned - sums);
  }
  // a quarter: the passes' own copies beside what is counted of a token
  for (const int64_t tokens : {kMostChunkTokens, kMostChunkTokens / 2})
    if (tokens > usual && tokens * chunk_token_bytes(config, placement.weight_dtype()) <= room / 4) return tokens;
  return usual;
}

std::vector<Covariance> collect_covariances(const CausalLM& model, const CorpusTokens& corpus,
                                            std::span<const int64_t> layers, Communicator& communicator,
                                            PassOptions options) {
  const torch::NoGradGuard no_grad;
  std::optional<Sums> sums;
  communicator.run_collectively("statistics", [&] {
    sums.emplace(model, layers);
    collect_own_chunks(model, corpus, own_chunks(model, corpus, options.chunk_tokens, communicator), layers, *sums,
                       options.saves);
  });
  sums->sum_over(communicator);
  std::vector<Covariance> covariances = std::move(*sums).take();
  for (size_t i = 0; i < covariances.size(); ++i)  // a key that is not finite shows on the diagonal
    if (const double trace = covariances[i].moment_FF.diagonal(0, -2, -1).sum().item<double>(); !std::isfinite(trace))
      throw not_finite(model, cat("statistics of layer ", layers[i], ": the trace of the covariance is ", trace),
                       wider_dtype(model));
  return covariances;
}

}  // namespace lancet
