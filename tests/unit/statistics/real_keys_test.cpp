// How exact second moments of a real model's keys are when these are multiplied as GPUs do it: the demo model in bf16.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <iostream>

#include "lancet/kernels/gram.h"
#include "lancet/models/batching.h"
#include "lancet/statistics/covariance.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

/// Sums of keys in both ways, and in f64.
struct KeySums {
  explicit KeySums(int64_t size)
      : kept(size, Placement::host(), GramProducts::kSixteenBits),
        widened(size, Placement::host(), GramProducts::kWidened),
        exact_FF(torch::zeros({size, size}, torch::kDouble)) {}

  void add(const Tensor& keys_NF, RowCounts& counts) {
    kept.add(keys_NF, counts);
    widened.add(keys_NF, counts);
    const Tensor exact_NF = keys_NF.to(torch::kDouble), counts_N = counts.on(Placement::host());
    exact_FF.addmm_((counts_N.defined() ? exact_NF * counts_N.unsqueeze(1) : exact_NF).t(), exact_NF);
  }

  GramAccumulator kept, widened;
  Tensor exact_FF;
};

TEST(RealKeys, OfSixteenBitsHaveTheMomentsOfF64) {
  const torch::NoGradGuard no_grad;
  const Checkpoint checkpoint = Checkpoint::open(testing::demo_model_folder());
  const ModelConfig config = load_model_config(checkpoint);
  const CausalLM model =
      CausalLM::load(checkpoint, config, plan_placement(config.n_layers, {{Placement::host()}}, torch::kBFloat16));
  StatisticsOptions options;
  options.corpus = testing::demo_model_folder().parent_path() / "requests" / "demo-corpus.txt";
  options.tokens = 30'000;
  const CorpusTokens corpus = read_corpus(*open_tokenizer(testing::demo_model_folder()), options, config);
  KeySums sums(config.d_ffn);
  int64_t tokens = 0, repeated = 0;
  for (const std::vector<int64_t>& pack : plan_packs(corpus.documents, 8192)) {
    std::vector<std::span<const TokenId>> documents;
    for (const int64_t i : pack) documents.emplace_back(corpus.documents[static_cast<size_t>(i)]);
    const TokenBatch batch = make_packed_batch(documents);
    RowCounts counts(token_counts(batch.sequence));
    tokens += batch.ids_BT.numel();
    const Tensor places = counts.repeated(0, batch.ids_BT.numel(), Placement::host()).places_R;
    repeated += places.defined() ? places.numel() : 0;
    HookSet hooks;
    hooks.observe({HookPoint::kMlpKey, 1}, [&](const Tensor& keys_1TF) { sums.add(keys_1TF[0], counts); });
    hooks.stop_at({HookPoint::kMlpKey, 1});
    model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, {0, 2}, hooks);
  }
  const Tensor exact = sums.exact_FF / sums.kept.rows();
  const double of_kept = testing::nmse(std::move(sums.kept).take_mean(), exact);
  std::cout << tokens << " keys, " << repeated << " of them counted more than once: NMSE " << of_kept
            << "; of widened ones " << testing::nmse(std::move(sums.widened).take_mean(), exact) << "\n";
  EXPECT_GT(repeated, tokens / 100);
  EXPECT_LE(of_kept, 1e-12);
}

}  // namespace
}  // namespace lancet
