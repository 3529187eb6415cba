#include "lancet/statistics/gradient_moments.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <optional>

#include "lancet/core/progress.h"
#include "lancet/models/batching.h"
#include "lancet/models/memory.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"
#include "moment_sums.h"

namespace lancet {
namespace {

/// A chunk's documents, padded to the longest one, and the positions that predict a token.
struct LabelledChunk {
  TokenBatch batch;
  std::vector<int64_t> places, labels;

  LabelledChunk(const CorpusTokens& corpus, std::span<const int64_t> documents) {
    std::vector<std::vector<TokenId>> rows;
    for (const int64_t document : documents) rows.push_back(corpus.documents[static_cast<size_t>(document)]);
    batch = make_batch(rows);
    for (size_t row = 0; row < rows.size(); ++row)
      for (size_t t = 0; t + 1 < rows[row].size(); ++t) {
        places.push_back(static_cast<int64_t>(row) * batch.ids_BT.size(1) + static_cast<int64_t>(t));
        labels.push_back(rows[row][t + 1]);
      }
  }
};

/// Returns the gradient [N, D] of the labels' summed NLL with respect to the last layer's output at their positions.
/// Only some of the logits are in memory at a time.
Tensor loss_gradient(const CausalLM& model, const Tensor& hidden_ND, const Tensor& label_N) {
  const int64_t at_once = rows_per_head_call(model.config(), model.placement().weight_dtype());
  Tensor gradient_ND = torch::empty_like(hidden_ND);
  for (int64_t begin = 0; begin < hidden_ND.size(0); begin += at_once) {
    const int64_t rows = std::min(at_once, hidden_ND.size(0) - begin);
    const Tensor part_RD = hidden_ND.narrow(0, begin, rows).detach().requires_grad_(true);
    const Tensor logits_RV = model.logits(part_RD).to(model.placement().value_dtype());
    const Tensor loss = -torch::log_softmax(logits_RV, 1).gather(1, label_N.narrow(0, begin, rows).unsqueeze(1)).sum();
    gradient_ND.narrow(0, begin, rows).copy_(torch::autograd::grad({loss}, {part_RD}).front());
  }
  return gradient_ND;
}

/// Adds the gradients at the layers' outputs for one chunk.
void add_chunk(const CausalLM& model, const LabelledChunk& chunk, std::span<const int64_t> layers, MomentSums& sums) {
  const SequenceInfo& sequence = chunk.batch.sequence;
  Tensor below_BTD;
  {
    const torch::NoGradGuard no_grad;
    below_BTD = model.run_layers(model.embed(chunk.batch.ids_BT, sequence), sequence, {0, layers.front()});
  }
  const torch::AutoGradMode with_gradients(true);
  std::vector<Tensor> outputs(layers.size());
  HookSet hooks;
  // The lowest output depends on no leaf tensor, so it becomes one. The others stay part of the graph.
  for (size_t i = 0; i < layers.size(); ++i)
    hooks.replace({HookPoint::kMlpOut, layers[i]}, [&outputs, i](const Tensor& y) {
      outputs[i] = y.requires_grad() ? y : y.detach().requires_grad_(true);
      return outputs[i];
    });
  const Tensor last_BTD = model.run_layers(below_BTD, sequence, {layers.front(), model.config().n_layers}, hooks);
  const at::Device head = model.placement().head_device();
  const Tensor hidden_ND = last_BTD.flatten(0, 1).index_select(0, to_index(chunk.places, head));
  const Tensor by_hidden_ND = loss_gradient(model, hidden_ND, to_index(chunk.labels, head));
  const std::vector<Tensor> gradients = torch::autograd::grad({hidden_ND}, outputs, {by_hidden_ND});
  const torch::NoGradGuard no_grad;
  RowCounts once;
  for (size_t i = 0; i < layers.size(); ++i)
    sums.of(i).add(gradients[i].flatten(0, 1).index_select(0, to_index(chunk.places, gradients[i].device())), once);
}

/// Returns the documents of each of this rank's chunks. Documents of equal length are together. The chunks depend only
/// on the corpus and the size of chunks.
std::vector<std::vector<int64_t>> own_chunks(const CorpusTokens& corpus, int64_t chunk_tokens,
                                             const Communicator& communicator) {
  std::vector<int64_t> documents, lengths;
  for (size_t i = 0; i < corpus.documents.size(); ++i) {
    if (corpus.documents[i].size() < 2) continue;  // predicts nothing
    documents.push_back(static_cast<int64_t>(i));
    lengths.push_back(static_cast<int64_t>(corpus.documents[i].size()));
  }
  const std::vector<std::vector<int64_t>> chunks = plan_batches(lengths, {.tokens = chunk_tokens});
  std::vector<std::vector<int64_t>> own;
  for (const size_t i : own_pieces(communicator, chunks.size())) {
    own.emplace_back();
    for (const int64_t place : chunks[i]) own.back().push_back(documents[static_cast<size_t>(place)]);
  }
  return own;
}

void collect_own_chunks(const CausalLM& model, const CorpusTokens& corpus, std::span<const int64_t> layers,
                        const std::vector<std::vector<int64_t>>& chunks, MomentSums& sums, PartialSums* saves) {
  int64_t tokens = 0;
  for (const std::vector<int64_t>& documents : chunks)
    for (const int64_t document : documents)
      tokens += static_cast<int64_t>(corpus.documents[static_cast<size_t>(document)].size()) - 1;
  Progress progress("statistics", tokens, "tokens", saves != nullptr ? kOncePerModel : "");
  progress.measure_by("", static_cast<int64_t>(chunks.size()));
  const auto n_chunks = static_cast<int64_t>(chunks.size());
  for (int64_t i = sums.go_on_from(saves, tokens, progress); i < n_chunks; ++i) {
    const LabelledChunk chunk(corpus, chunks[static_cast<size_t>(i)]);
    add_chunk(model, chunk, layers, sums);
    progress.advance_pieces();
    progress.advance(static_cast<int64_t>(chunk.labels.size()));
    if (saves != nullptr && saves->due()) saves->save(sums.after(i + 1));
  }
}

}  // namespace

int64_t backward_token_bytes(const ModelConfig& config, at::ScalarType dtype) {
  // Counts the inputs and outputs of norms, the residual stream, gate, up, the activated gate and the key, queries,
  // keys and values, and the heads' results; and the widest of them once more, as a gradient.
  const int64_t numbers =
      8 * config.d_model + 5 * config.active_ffn() + 2 * query_size(config) + 2 * config.n_kv_heads * config.head_dim;
  return numbers * static_cast<int64_t>(at::elementSize(dtype));
}

int64_t gradient_chunk_tokens(const ModelConfig& config, at::ScalarType dtype, int64_t first_layer) {
  constexpr int64_t kMostBytes = 1'000'000'000, kFewest = 256;
  const int64_t token_bytes = (config.n_layers - first_layer) * backward_token_bytes(config, dtype);
  return std::clamp(kMostBytes / token_bytes / kFewest * kFewest, kFewest, kForwardTokens);
}

std::vector<Covariance> collect_gradient_moments(const CausalLM& model, const CorpusTokens& corpus,
                                                 std::span<const int64_t> layers, Communicator& communicator,
                                                 PassOptions options) {
  if (options.chunk_tokens == 0)
    options.chunk_tokens = gradient_chunk_tokens(model.config(), model.placement().weight_dtype(), layers.front());
  std::optional<MomentSums> sums;
  communicator.run_collectively("statistics", [&] {
    sums.emplace(model, MomentSide::kGradients, layers);
    collect_own_chunks(model, corpus, layers, own_chunks(corpus, options.chunk_tokens, communicator), *sums,
                       options.saves);
  });
  const torch::NoGradGuard no_grad;
  sums->sum_over(communicator);
  return std::move(*sums).take();
}

}  // namespace lancet
