#include "lancet/edit/statistics.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <fstream>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TempDir;
using testing::TinyModel;

StatisticsOptions options_in(const TempDir& folder, int64_t tokens) {
  StatisticsOptions options;
  options.corpus = testing::write_corpus(folder.path(), 40);
  options.tokens = tokens;
  options.cache = folder / "cache";
  return options;
}

/// One document at a time, one layer at a time.
Tensor plain_moment(const CausalLM& model, const CorpusTokens& corpus, int64_t layer) {
  Tensor sum = torch::zeros({model.config().d_ffn, model.config().d_ffn}, torch::kDouble);
  for (const auto& document : corpus.documents) {
    HookSet hooks;
    hooks.observe({HookPoint::kMlpKey, layer}, [&](const Tensor& keys) {
      for (int64_t t = 0; t < keys.size(1); ++t) sum += torch::outer(keys[0][t], keys[0][t]);
    });
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{document});
    model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers(), hooks);
  }
  return sum / static_cast<double>(corpus.tokens);
}

TEST(Statistics, EqualOnePassPerDocumentAndLayer) {
  const TinyModel tiny;
  const TempDir folder;
  const CausalLM model = tiny.load();
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, options_in(folder, 300), 256);
  const std::vector<int64_t> layers{0, 2};
  const auto covariances = collect_covariances(model, corpus, layers);
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(covariances[i].tokens, 300);
    EXPECT_LE(nmse(covariances[i].moment_FF, plain_moment(model, corpus, layers[i])), 1e-26);
  }
}

TEST(Statistics, CutDocumentsAndTheBudget) {
  const TinyModel tiny;
  const TempDir folder;
  StatisticsOptions options = options_in(folder, 100);
  options.document_tokens = 7;
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, options, 256);
  EXPECT_EQ(corpus.tokens, 100);
  EXPECT_FALSE(corpus.exhausted);
  for (const auto& document : corpus.documents) EXPECT_LE(document.size(), 7u);
  EXPECT_EQ(corpus.documents.front().front(), *tiny.tokenizer->bos_id());
}

TEST(StatisticsStore, ReadsBackWhatItWrote) {
  const TinyModel tiny;
  const TempDir folder;
  const CausalLM model = tiny.load();
  const std::vector<int64_t> layers{0, 1};
  StatisticsStore store(model, *tiny.tokenizer, tiny.checkpoint, options_in(folder, 300));
  const auto fresh = store.load(layers);
  EXPECT_TRUE(store.cached_layers().empty());
  const auto again = store.load(layers);
  EXPECT_EQ(store.cached_layers(), layers);
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_TRUE(again[i].moment_FF.equal(fresh[i].moment_FF));
    EXPECT_EQ(again[i].tokens, fresh[i].tokens);
  }
}

TEST(StatisticsStore, KeysItsCacheByContent) {
  const TinyModel tiny;
  const TinyModel other({.seed = 2});
  const TempDir folder;
  const CausalLM f64 = tiny.load();
  const CausalLM f32 = tiny.load(at::kFloat);
  const CausalLM other_f64 = other.load();
  StatisticsStore store(f64, *tiny.tokenizer, tiny.checkpoint, options_in(folder, 300));
  StatisticsStore more_tokens(f64, *tiny.tokenizer, tiny.checkpoint, options_in(folder, 310));
  StatisticsStore other_type(f32, *tiny.tokenizer, tiny.checkpoint, options_in(folder, 300));
  StatisticsStore other_model(other_f64, *other.tokenizer, other.checkpoint, options_in(folder, 300));
  EXPECT_NE(store.cache_file(0), store.cache_file(1));
  EXPECT_NE(store.cache_file(0), more_tokens.cache_file(0));
  EXPECT_NE(store.cache_file(0), other_type.cache_file(0));
  EXPECT_NE(store.cache_file(0), other_model.cache_file(0));
  EXPECT_EQ(store.cache_file(0), StatisticsStore(f64, *tiny.tokenizer, tiny.checkpoint, options_in(folder, 300)).cache_file(0));
}

TEST(StatisticsStore, RefusesFewerTokensThanDimensions) {
  const TinyModel tiny;
  const TempDir folder;
  const CausalLM model = tiny.load();
  try {
    StatisticsStore store(model, *tiny.tokenizer, tiny.checkpoint, options_in(folder, 40));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("40 tokens, but a covariance of size 48 needs at least as many"), std::string::npos);
  }
}

TEST(StatisticsStore, UsesASmallCorpusWholeAndSaysSo) {
  const TinyModel tiny;
  const TempDir folder;
  const CausalLM model = tiny.load();
  StatisticsStore store(model, *tiny.tokenizer, tiny.checkpoint, options_in(folder, 1'000'000));
  EXPECT_TRUE(store.corpus().exhausted);
  EXPECT_LT(store.corpus().tokens, 1'000'000);
}

TEST(StatisticsStore, RefusesADamagedCacheFile) {
  const TinyModel tiny;
  const TempDir folder;
  const CausalLM model = tiny.load();
  const std::vector<int64_t> layers{0};
  StatisticsStore store(model, *tiny.tokenizer, tiny.checkpoint, options_in(folder, 300));
  store.load(layers);
  std::filesystem::resize_file(store.cache_file(0), 100);
  EXPECT_THROW(store.load(layers), CheckpointError);
}

}  // namespace
}  // namespace lancet
