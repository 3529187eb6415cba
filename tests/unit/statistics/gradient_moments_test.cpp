#include "lancet/statistics/gradient_moments.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/statistics/curvature.h"
#include "lancet/statistics/spectrum_store.h"
#include "lancet/statistics/statistics_store.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TempDir;
using testing::TinyModel;

const std::vector<int64_t> kAtLayers{1, 2};

CorpusTokens some_text(const TinyModel& tiny, const TempDir& folder, int64_t tokens) {
  StatisticsOptions options;
  options.corpus = testing::write_corpus(folder.path(), 3000);
  options.tokens = tokens;
  return read_corpus(*tiny.tokenizer, options, tiny.config);
}

/// A document at a time: the gradient of the summed cross-entropy by a term beside the output.
Tensor plain_gradient_moment(const CausalLM& model, const CorpusTokens& corpus, int64_t layer) {
  const int64_t d = model.config().d_model;
  Tensor sum = torch::zeros({d, d}, torch::kDouble);
  int64_t tokens = 0;
  for (const std::vector<TokenId>& document : corpus.documents) {
    if (document.size() == 1) continue;  // no loss
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{document});
    const Tensor term_1TD = torch::zeros({1, std::ssize(document), d}, torch::kDouble).requires_grad_(true);
    HookSet hooks;
    hooks.replace({HookPoint::kMlpOut, layer}, [&](const Tensor& y) { return y + term_1TD; });
    const Tensor h_1TD =
        model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), hooks);
    Tensor loss = torch::zeros({}, torch::kDouble);
    for (int64_t t = 0; t + 1 < std::ssize(document); ++t)
      loss =
          loss - torch::log_softmax(model.logits(h_1TD[0].narrow(0, t, 1)), 1)[0][document[static_cast<size_t>(t) + 1]];
    const Tensor gradient_TD = torch::autograd::grad({loss}, {term_1TD}).front()[0];
    sum += torch::matmul(gradient_TD.t(), gradient_TD);
    tokens += std::ssize(document) - 1;
  }
  return sum / static_cast<double>(tokens);
}

TEST(GradientMoments, EqualOneDocumentAndLayerAtATime) {
  const TinyModel tiny;
  const TempDir folder;
  const CausalLM model = tiny.load();
  CorpusTokens corpus = some_text(tiny, folder, 300);
  corpus.documents.push_back({5});  // predicts nothing
  const std::vector<Covariance> moments =
      collect_gradient_moments(model, corpus, kAtLayers, alone(), {.chunk_tokens = 64});
  for (size_t i = 0; i < kAtLayers.size(); ++i) {
    EXPECT_EQ(moments[i].tokens, 300 - (std::ssize(corpus.documents) - 1));
    EXPECT_LE(nmse(moments[i].moment_FF, plain_gradient_moment(model, corpus, kAtLayers[i])), 1e-24);
  }
}

TEST(GradientMoments, AnInterruptedPassGoesOnToTheSameBits) {
  const TinyModel tiny;
  const TempDir folder;
  const CausalLM model = tiny.load(at::kFloat);
  const CorpusTokens corpus = some_text(tiny, folder, 3000);
  const auto collect = [&](const CorpusTokens& text, PartialSums* saves) {
    return collect_gradient_moments(model, text, kAtLayers, alone(), {.chunk_tokens = 512, .saves = saves});
  };
  CorpusTokens broken = corpus;
  std::ranges::max_element(broken.documents, {}, [](const auto& ids) { return ids.size(); })->back() =
      static_cast<TokenId>(model.config().vocab_size);  // no such token, in the last chunk
  PartialSums saves(folder.path(), "test", 0);
  EXPECT_ANY_THROW(collect(broken, &saves));
  const std::optional<SavedPass> saved = saves.load(std::vector(2, KeyShape{.width = tiny.config.d_model}));
  ASSERT_TRUE(saved.has_value());
  EXPECT_GT(saved->chunks, 2);
  const std::vector<Covariance> whole = collect(corpus, nullptr), resumed = collect(corpus, &saves);
  for (size_t i = 0; i < kAtLayers.size(); ++i) {
    EXPECT_EQ(resumed[i].tokens, whole[i].tokens);
    EXPECT_TRUE(resumed[i].moment_FF.equal(whole[i].moment_FF));
  }
}

TEST(GradientMoments, LieInTheCacheBesideKeysUnderEveryWeightsBytes) {
  const TinyModel tiny;
  const TinyModel other({.seed = 2});
  const TempDir folder;
  const CausalLM model = tiny.load();
  const CorpusTokens corpus = some_text(tiny, folder, 300);
  const auto store_of = [&](const Checkpoint& checkpoint, MomentSide side) {
    return StatisticsStore(model, checkpoint, corpus, folder / "cache", side);
  };
  StatisticsStore made = store_of(tiny.checkpoint, MomentSide::kGradients);
  EXPECT_NE(made.cache_file(1), store_of(tiny.checkpoint, MomentSide::kKeys).cache_file(1));
  EXPECT_NE(made.cache_file(1), store_of(other.checkpoint, MomentSide::kGradients).cache_file(1));
  SpectrumStore spectra(made, model.placement(), tiny.config, folder / "cache", MomentSide::kGradients);
  spectra.prepare(kAtLayers, alone());
  EXPECT_FALSE(spectra.moments_from_cache(1));
  StatisticsStore again = store_of(tiny.checkpoint, MomentSide::kGradients);
  again.prepare(kAtLayers, alone());
  EXPECT_TRUE(again.from_cache(1) && again.from_cache(2));
  const MomentSpectrum spectrum = spectra.load(2);
  EXPECT_EQ(spectrum.tokens, again.load(2).tokens);
  EXPECT_LE(
      nmse(torch::matmul(spectrum.vectors_NN * spectrum.values_N, spectrum.vectors_NN.t()), again.load(2).moment_FF),
      1e-26);
}

TEST(Curvature, LeavesAloneTheProductsThatCarryTheEnergy) {
  const auto spectrum = [](std::vector<double> values) {
    const auto size = static_cast<int64_t>(values.size());
    return MomentSpectrum{torch::tensor(values, torch::kDouble), torch::eye(size, torch::kDouble), 10};
  };
  const Curvature curvature{spectrum({1, 2, 5}), spectrum({1, 10})};  // products 1 2 5 10 20 50, in all 88
  const auto allowed = [&](double energy) {
    return find_low_curvature(curvature, energy, "test").allowed_OI.sum().item<int64_t>();
  };
  EXPECT_EQ(allowed(0.5), 5);
  EXPECT_EQ(allowed(0.6), 4);
  EXPECT_EQ(allowed(0.95), 2);  // 50 + 20 + 10 = 80 are less
  EXPECT_EQ(find_low_curvature(curvature, 0.95, "test").below, 5);
  EXPECT_THROW(find_low_curvature(curvature, 1 - 1e-9, "test"), NumericError);
  // a row counts as one token of the mean
  const MomentSpectrum more =
      joined(curvature.inputs, torch::tensor({{3.0, 0.0, 0.0}, {0.0, 4.0, 0.0}}, torch::kDouble), "test");
  EXPECT_EQ(more.tokens, 12);
  EXPECT_LE(nmse(more.values_N, torch::tensor({19.0 / 12, 3.0, 50.0 / 12}, torch::kDouble)), 1e-28);
}

}  // namespace
}  // namespace lancet
