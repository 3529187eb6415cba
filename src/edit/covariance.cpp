#include "lancet/edit/covariance.h"

#include <torch/types.h>

#include <algorithm>
#include <memory>

#include "lancet/core/progress.h"
#include "lancet/kernels/gram.h"
#include "lancet/models/batching.h"

namespace lancet {
namespace {

/// Documents are gone through in chunks of this many, each sorted by length; part of the definition of the sum's order.
constexpr size_t kChunkDocuments = 1024;

std::vector<int64_t> valid_positions(const SequenceInfo& sequence) {
  const int64_t width = sequence.positions_BT.size(1);
  std::vector<int64_t> positions;
  for (size_t row = 0; row < sequence.lengths.size(); ++row)
    for (int64_t t = 0; t < sequence.lengths[row]; ++t) positions.push_back(static_cast<int64_t>(row) * width + t);
  return positions;
}

}  // namespace

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

}  // namespace lancet
