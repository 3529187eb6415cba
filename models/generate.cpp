#include "lancet/models/generate.h"

#include <torch/types.h>

#include <algorithm>
#include <random>

#include "lancet/models/batching.h"

namespace lancet {
namespace {

/// One uniform number in [0, 1) from the engine's bits: std::uniform_real_distribution differs between libraries.
double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1.0p-53; }

class Sampler {
 public:
  Sampler(const GenerateOptions& options, std::span<const int64_t> rows) : top_k_(options.top_k) {
    for (const int64_t row : rows) {
      std::seed_seq sequence{options.seed, static_cast<uint64_t>(row)};
      engines_.emplace_back(sequence);
    }
  }

  /// logits [B, V] -> one id a row, on the host.
  std::vector<TokenId> next(const Tensor& logits_BV) {
    const auto [values, indices] = logits_BV.to(at::kFloat).topk(std::min(top_k_, logits_BV.size(1)), 1);
    const Tensor ids_BK = indices.to(Placement::host()).contiguous();
    const Tensor probabilities_BK = torch::softmax(values.to(Placement::host(), at::kDouble), 1).contiguous();
    std::vector<TokenId> chosen;
    for (int64_t row = 0; row < ids_BK.size(0); ++row) {
      const double* probabilities = probabilities_BK.const_data_ptr<double>() + row * ids_BK.size(1);
      double left = top_k_ == 1 ? 0.0 : uniform(engines_[static_cast<size_t>(row)]);
      int64_t pick = 0;
      while (pick + 1 < ids_BK.size(1) && left >= probabilities[pick]) left -= probabilities[pick++];
      chosen.push_back(ids_BK.const_data_ptr<int64_t>()[row * ids_BK.size(1) + pick]);
    }
    return chosen;
  }

 private:
  int64_t top_k_;
  std::vector<std::mt19937_64> engines_;
};

/// Generates for some rows together; results go to their places in `out`.
void generate_batch(const CausalLM& model, std::span<const GenerateRow> rows, std::span<const int64_t> batch_rows,
                    const GenerateOptions& options, std::vector<std::vector<TokenId>>& out) {
  std::vector<std::vector<TokenId>> prompts;
  for (const int64_t row : batch_rows) prompts.push_back(rows[static_cast<size_t>(row)].prompt);
  TokenBatch batch = make_batch(prompts);
  KeyValues cache;
  batch.sequence.record = &cache;
  Tensor h_BTD = model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers());
  Tensor positions_B = torch::tensor(batch.sequence.lengths, torch::kLong);
  Tensor last_BD = h_BTD.flatten(0, 1).index_select(
      0, (torch::arange(h_BTD.size(0)) * h_BTD.size(1) + positions_B - 1).to(h_BTD.device()));

  Sampler sampler(options, batch_rows);
  std::vector<bool> done(batch_rows.size(), false);
  while (true) {
    const std::vector<TokenId> chosen = sampler.next(model.logits(last_BD));
    bool any_left = false;
    for (size_t i = 0; i < batch_rows.size(); ++i) {
      const size_t row = static_cast<size_t>(batch_rows[i]);
      const bool ends = std::find(options.eos_ids.begin(), options.eos_ids.end(), chosen[i]) != options.eos_ids.end();
      done[i] = done[i] || ends || static_cast<int64_t>(out[row].size()) >= rows[row].max_new_tokens;
      if (!done[i]) out[row].push_back(chosen[i]);
      done[i] = done[i] || static_cast<int64_t>(out[row].size()) >= rows[row].max_new_tokens;
      any_left = any_left || !done[i];
    }
    if (!any_left) return;
    // Rows that are done go on with the rest; what they would say is not looked at.
    SequenceInfo step;
    step.lengths.assign(batch_rows.size(), 1);
    step.positions_BT = positions_B.unsqueeze(1);
    step.prefix = &cache;
    step.record = &cache;
    const Tensor ids_B1 = torch::tensor(chosen, torch::kLong).unsqueeze(1);
    last_BD = model.run_layers(model.embed(ids_B1), step, model.all_layers()).squeeze(1);
    positions_B = positions_B + 1;
  }
}

}  // namespace

std::vector<std::vector<TokenId>> generate(const CausalLM& model, std::span<const GenerateRow> rows,
                                           const GenerateOptions& options) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> lengths;
  for (const GenerateRow& row : rows) lengths.push_back(static_cast<int64_t>(row.prompt.size()) + row.max_new_tokens);
  std::vector<std::vector<TokenId>> out(rows.size());
  for (const std::vector<int64_t>& batch_rows : plan_batches(lengths, kForwardTokens))
    generate_batch(model, rows, batch_rows, options, out);
  return out;
}

}  // namespace lancet
