#include "lancet/models/generate.h"

#include <torch/types.h>

#include <algorithm>
#include <random>

#include "lancet/runtime/host_workers.h"

namespace lancet {
namespace {

/// One uniform number in [0, 1) from the engine's bits: std::uniform_real_distribution differs between libraries.
double uniform(std::mt19937_64& engine) { return static_cast<double>(engine() >> 11) * 0x1.0p-53; }

/// Draws the next ids of some rows; each has random numbers of its own.
class Sampler {
 public:
  Sampler(const GenerateOptions& options, std::span<const int64_t> rows) : top_k_(options.top_k) {
    for (const int64_t row : rows) {
      std::seed_seq sequence{options.seed, static_cast<uint64_t>(options.first_row + row)};
      engines_.emplace_back(sequence);
    }
  }

  /// logits [B, V] -> one id a row, on the host.
  std::vector<TokenId> next(const Tensor& logits_BV) {
    return top_k_ == 0 ? from_all(logits_BV) : from_likeliest(logits_BV);
  }

  void keep(const std::vector<int64_t>& places) {
    std::vector<std::mt19937_64> kept;
    for (const int64_t place : places) kept.push_back(engines_[static_cast<size_t>(place)]);
    engines_ = std::move(kept);
  }

 private:
  std::vector<TokenId> from_likeliest(const Tensor& logits_BV) {
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

  /// The first id whose cumulative probability is above a uniform number; on the logits' device.
  std::vector<TokenId> from_all(const Tensor& logits_BV) {
    const Tensor cumulative_BV = torch::softmax(logits_BV.to(at::kFloat), 1).cumsum(1, at::kDouble);
    std::vector<double> drawn;
    for (std::mt19937_64& engine : engines_) drawn.push_back(uniform(engine));
    const Tensor level_B1 = torch::tensor(drawn, torch::kDouble).unsqueeze(1).to(logits_BV.device());
    const Tensor ids_B1 = at::searchsorted(cumulative_BV, level_B1 * cumulative_BV.slice(1, -1), /*out_int32=*/false,
                                           /*right=*/true);
    const Tensor host_B = ids_B1.squeeze(1).clamp_max(logits_BV.size(1) - 1).to(Placement::host()).contiguous();
    return {host_B.const_data_ptr<int64_t>(), host_B.const_data_ptr<int64_t>() + host_B.numel()};
  }

  int64_t top_k_;
  std::vector<std::mt19937_64> engines_;
};

/// Rows that are generated together.
class GenerateBatch {
 public:
  GenerateBatch(const CausalLM& model, std::span<const GenerateRow> rows, std::vector<int64_t> batch_rows,
                const GenerateOptions& options)
      : model_(model), rows_(rows), options_(options), left_(std::move(batch_rows)), sampler_(options, left_) {}

  /// Results go to their rows' places in `out`.
  void run(std::vector<std::vector<TokenId>>& out) {
    run_prompts();
    std::vector<bool> done(left_.size(), false);
    while (true) {
      std::vector<TokenId> chosen = sampler_.next(model_.logits(last_BD_));
      std::vector<int64_t> places;
      for (size_t i = 0; i < left_.size(); ++i) {
        done[i] =
            done[i] || !accept(rows_[static_cast<size_t>(left_[i])], chosen[i], out[static_cast<size_t>(left_[i])]);
        if (!done[i]) places.push_back(static_cast<int64_t>(i));
      }
      if (places.empty()) return;
      // Rows that are done go on with the rest until half are: leaving costs a copy of the cache.
      if (places.size() <= left_.size() / 2) {
        keep(places, chosen);
        done.assign(places.size(), false);
      }
      step(chosen);
    }
  }

 private:
  void run_prompts() {
    std::vector<std::vector<TokenId>> prompts;
    for (const int64_t row : left_) prompts.push_back(rows_[static_cast<size_t>(row)].prompt);
    TokenBatch batch = make_batch(prompts);
    positions_B_ = torch::tensor(batch.sequence.lengths, torch::kLong);
    batch.sequence.record = &cache_;
    batch.sequence.outputs_BO = (positions_B_ - 1).unsqueeze(1);
    last_BD_ = model_.run_layers(model_.embed(batch.ids_BT), batch.sequence, model_.all_layers()).squeeze(1);
  }

  /// Whether the row goes on behind `id`.
  bool accept(const GenerateRow& row, TokenId id, std::vector<TokenId>& out) const {
    const bool ends = std::find(options_.eos_ids.begin(), options_.eos_ids.end(), id) != options_.eos_ids.end();
    if (ends || static_cast<int64_t>(out.size()) >= row.max_new_tokens) return false;
    out.push_back(id);
    return static_cast<int64_t>(out.size()) < row.max_new_tokens;
  }

  void keep(const std::vector<int64_t>& places, std::vector<TokenId>& chosen) {
    const auto take = [&](Tensor& tensor) {
      if (tensor.defined()) tensor = tensor.index_select(0, to_index(places, tensor.device()));
    };
    for (Tensor& keys_BKPC : cache_.keys_BKPC) take(keys_BKPC);
    for (Tensor& values_BKPC : cache_.values_BKPC) take(values_BKPC);
    take(cache_.valid_BP);
    take(positions_B_);
    for (size_t i = 0; i < places.size(); ++i) {
      left_[i] = left_[static_cast<size_t>(places[i])];
      chosen[i] = chosen[static_cast<size_t>(places[i])];
    }
    left_.resize(places.size());
    chosen.resize(places.size());
    sampler_.keep(places);
  }

  void step(const std::vector<TokenId>& chosen) {
    SequenceInfo sequence;
    sequence.lengths.assign(left_.size(), 1);
    sequence.positions_BT = positions_B_.unsqueeze(1);
    sequence.prefix = &cache_;
    sequence.record = &cache_;
    const Tensor ids_B1 = torch::tensor(chosen, torch::kLong).unsqueeze(1);
    last_BD_ = model_.run_layers(model_.embed(ids_B1), sequence, model_.all_layers()).squeeze(1);
    positions_B_ = positions_B_ + 1;
  }

  const CausalLM& model_;
  std::span<const GenerateRow> rows_;
  const GenerateOptions& options_;
  std::vector<int64_t> left_;  ///< rows in the batch, by place
  Sampler sampler_;
  KeyValues cache_;
  Tensor positions_B_;  ///< of the tokens that come next, host
  Tensor last_BD_;      ///< hidden states that they are drawn from
};

}  // namespace

std::vector<std::vector<TokenId>> generate(const CausalLM& model, std::span<const GenerateRow> rows,
                                           const GenerateOptions& options) {
  std::vector<int64_t> lengths;
  for (const GenerateRow& row : rows) lengths.push_back(static_cast<int64_t>(row.prompt.size()) + row.max_new_tokens);
  std::vector<std::vector<TokenId>> out(rows.size());
  const int64_t batch_tokens = std::max<int64_t>(1, options.batch_tokens / model.placement().batches_under_way());
  const std::vector<std::vector<int64_t>> batches = plan_batches(lengths, {.tokens = batch_tokens});
  run_overlapped(model.placement(), static_cast<int64_t>(batches.size()), [&](int64_t i) {
    const torch::NoGradGuard no_grad;
    GenerateBatch(model, rows, batches[static_cast<size_t>(i)], options).run(out);
  });
  return out;
}

}  // namespace lancet
