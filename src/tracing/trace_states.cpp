#include "trace_states.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/models/memory.h"
#include "lancet/tracing/trace_noise.h"

namespace lancet {
namespace {

/// Returns h [B, T, D] with the samples' noise added to the embeddings of the subjects.
Tensor with_noise(Tensor h_BTD, std::span<const TracedFact> facts, const TraceOptions& options) {
  const int64_t dims = h_BTD.size(2);
  for (size_t f = 0; f < facts.size(); ++f) {
    const auto& [ids, first, end] = facts[f].prompt;
    for (int64_t sample = 0; sample < options.samples; ++sample) {
      const NoiseKey key{options.seed, static_cast<uint64_t>(facts[f].index), static_cast<uint64_t>(sample)};
      const Tensor noise = options.noise * trace_noise(key, end - first, dims);
      const int64_t row = static_cast<int64_t>(f) * (options.samples + 1) + 1 + sample;
      h_BTD.select(0, row).slice(0, first, end).add_(noise.to(h_BTD.options()));
    }
  }
  return h_BTD;
}

}  // namespace

Tensor token_probabilities(const CausalLM& model, const Tensor& h_ND, const std::vector<int64_t>& tokens) {
  const Tensor token_N1 = to_index(tokens, h_ND.device()).unsqueeze(1);
  std::vector<Tensor> parts;
  const int64_t together = rows_per_head_call(model.config(), model.placement().weight_dtype());
  for (int64_t begin = 0; begin < h_ND.size(0); begin += together) {
    const int64_t end = std::min(begin + together, h_ND.size(0));
    const Tensor logits = model.logits(h_ND.slice(0, begin, end)).to(model.placement().value_dtype());
    parts.push_back(torch::softmax(logits, 1).gather(1, token_N1.slice(0, begin, end)).squeeze(1));
  }
  return torch::cat(parts).to(Placement::host(), torch::kDouble);
}

TraceStates::TraceStates(const CausalLM& model, std::span<const TracedFact> facts, const TraceOptions& options)
    : samples(options.samples) {
  const auto n_layers = static_cast<size_t>(model.config().n_layers);
  std::vector<std::vector<TokenId>> ids;
  std::vector<int64_t> clean_rows, objects;
  for (size_t f = 0; f < facts.size(); ++f) {
    clean_rows.push_back(clean_row(f));
    ids.insert(ids.end(), static_cast<size_t>(samples + 1), facts[f].prompt.ids);
    objects.insert(objects.end(), static_cast<size_t>(samples + 1), facts[f].object);
  }
  TokenBatch batch = make_batch(ids);
  width = batch.ids_BT.size(1);
  batch.sequence.record = &cache;
  inputs_BTD.resize(n_layers);
  mlp_FTD.resize(n_layers);
  attention_FTD.resize(n_layers);
  HookSet hooks;
  for (size_t l = 0; l < n_layers; ++l) {
    const auto layer = static_cast<int64_t>(l);
    const auto keep_clean = [&clean_rows](Tensor& place) {
      return
          [&](const Tensor& value_BTD) { place = value_BTD.index_select(0, to_index(clean_rows, value_BTD.device())); };
    };
    hooks.observe({HookPoint::kBlockIn, layer}, [this, l](const Tensor& value_BTD) { inputs_BTD[l] = value_BTD; });
    hooks.observe({HookPoint::kAttnOut, layer}, keep_clean(attention_FTD[l]));
    hooks.observe({HookPoint::kMlpOut, layer}, keep_clean(mlp_FTD[l]));
  }
  const Tensor h_BTD = model.run_layers(with_noise(model.embed(batch.ids_BT, batch.sequence), facts, options),
                                        batch.sequence, model.all_layers(), hooks);
  std::vector<int64_t> last;
  for (size_t row = 0; row < ids.size(); ++row)
    last.push_back(static_cast<int64_t>(row) * width + batch.sequence.lengths[row] - 1);
  const Tensor last_BD = h_BTD.flatten(0, 1).index_select(0, to_index(last, h_BTD.device()));
  const Tensor probabilities_FS = token_probabilities(model, last_BD, objects).view({-1, samples + 1});
  clean = to_doubles(probabilities_FS.select(1, 0));
  corrupted = to_doubles(probabilities_FS.slice(1, 1).mean(1));
}

}  // namespace lancet
