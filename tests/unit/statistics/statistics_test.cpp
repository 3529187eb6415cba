#include "lancet/statistics/statistics_store.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/io/files.h"
#include "support/edit_setup.h"
#include "support/interrupted.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::plain_moment;
using testing::TempDir;
using testing::TinyModel;

StatisticsOptions options_in(const TempDir& folder, int64_t tokens) {
  StatisticsOptions options;
  options.corpus = testing::write_corpus(folder.path(), 40);
  options.tokens = tokens;
  options.cache = folder / "cache";
  return options;
}

TEST(Statistics, EqualOnePassPerDocumentAndLayer) {
  const TinyModel tiny;
  const TempDir folder;
  const CausalLM model = tiny.load();
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, options_in(folder, 300), tiny.config);
  const std::vector<int64_t> layers{0, 2};
  const auto covariances = collect_covariances(model, corpus, layers, alone());
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(covariances[i].tokens, 300);
    EXPECT_LE(nmse(covariances[i].moment_FF, plain_moment(model, corpus, layers[i])), 1e-26);
  }
}

TEST(Statistics, CountTokensThatDocumentsShare) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  // equal documents, beginnings of others, and one that shares nothing
  const CorpusTokens corpus{{{1, 5, 9}, {1, 5, 9, 12, 40}, {1, 5}, {1, 5, 9}, {1, 7, 9}, {30, 31, 5, 9}}, 20, true};
  const std::vector<int64_t> layers{1};
  const Covariance covariance = collect_covariances(model, corpus, layers, alone()).front();
  EXPECT_EQ(covariance.tokens, 20);
  EXPECT_LE(nmse(covariance.moment_FF, plain_moment(model, corpus, 1)), 1e-26);
}

TEST(Statistics, RunFewerTokensAtOnceWhereActivationsAreLarge) {
  ModelConfig config;
  config.d_model = 256;
  config.d_ffn = 768;
  EXPECT_EQ(statistics_chunk_tokens(config, torch::kFloat), 8192);
  config.d_model = 4096;
  config.d_ffn = 14336;
  EXPECT_EQ(statistics_chunk_tokens(config, torch::kFloat), 2048);
  EXPECT_EQ(statistics_chunk_tokens(config, torch::kBFloat16), 3584);
  config.d_ffn = 1'000'000'000;
  EXPECT_EQ(statistics_chunk_tokens(config, torch::kFloat), 256);
}

TEST(Statistics, CutDocumentsAndTheBudget) {
  const TinyModel tiny;
  const TempDir folder;
  StatisticsOptions options = options_in(folder, 100);
  options.document_tokens = 7;
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, options, tiny.config);
  EXPECT_EQ(corpus.tokens, 100);
  EXPECT_FALSE(corpus.exhausted);
  for (const auto& document : corpus.documents) EXPECT_LE(document.size(), 7u);
  EXPECT_EQ(corpus.documents.front().front(), *tiny.tokenizer->bos_id());
}

/// A store with the corpus it reads from.
struct Store {
  CausalLM model;
  CorpusTokens corpus;
  StatisticsStore store;

  Store(const TinyModel& tiny, const TempDir& folder, int64_t tokens, at::ScalarType dtype = at::kDouble)
      : model(tiny.load(dtype)),
        corpus(read_corpus(*tiny.tokenizer, options_in(folder, tokens), tiny.config)),
        store(model, tiny.checkpoint, corpus, folder / "cache") {}
};

std::vector<Covariance> load(StatisticsStore& store, const std::vector<int64_t>& layers) {
  store.prepare(layers, alone());
  std::vector<Covariance> covariances;
  for (const int64_t layer : layers) covariances.push_back(store.load(layer));
  return covariances;
}

TEST(StatisticsStore, ReadsBackWhatItWrote) {
  const TinyModel tiny;
  const TempDir folder;
  const std::vector<int64_t> layers{0, 1};
  Store made(tiny, folder, 300);
  const auto fresh = load(made.store, layers);
  for (const int64_t layer : layers) EXPECT_FALSE(made.store.from_cache(layer));
  const auto again = load(made.store, layers);
  for (const int64_t layer : layers) EXPECT_TRUE(made.store.from_cache(layer));
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_TRUE(again[i].moment_FF.equal(fresh[i].moment_FF));
    EXPECT_EQ(again[i].tokens, fresh[i].tokens);
  }
}

TEST(StatisticsStore, CollectsOnlyTheLayersThatAreMissing) {
  const TinyModel tiny;
  const TempDir folder;
  Store made(tiny, folder, 300);
  load(made.store, std::vector<int64_t>{1});
  const auto both = load(made.store, std::vector<int64_t>{0, 1});
  EXPECT_FALSE(made.store.from_cache(0));
  EXPECT_TRUE(made.store.from_cache(1));
  EXPECT_LE(nmse(both[0].moment_FF, plain_moment(made.model, made.corpus, 0)), 1e-26);
  EXPECT_LE(nmse(both[1].moment_FF, plain_moment(made.model, made.corpus, 1)), 1e-26);
}

/// How many sums of passes under way lie in the cache.
int64_t saved_passes(const TempDir& folder) {
  int64_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache"))
    n += entry.path().string().ends_with(".partial.safetensors");
  return n;
}

TEST(StatisticsStore, RemovesTheSumsOfAPassThatWasKilledAmongItsResults) {
  const TinyModel tiny;
  const std::vector<int64_t> layers{0, 1};
  for (const std::vector<int64_t>& written : {std::vector<int64_t>{0}, std::vector<int64_t>{0, 1}}) {
    const TempDir folder;
    Store made(tiny, folder, 300);
    made.store.save_every(0);
    testing::Interrupted before_results("statistics", 3);  // preparing, collecting, writing
    EXPECT_THROW(made.store.prepare(layers, before_results), std::runtime_error);
    ASSERT_EQ(saved_passes(folder), 1);
    for (const int64_t layer : written) load(made.store, std::vector<int64_t>{layer});  // other passes
    ASSERT_EQ(saved_passes(folder), 1);
    load(made.store, layers);
    EXPECT_EQ(saved_passes(folder), 0) << written.size() << " of 2 results in the cache";
  }
}

TEST(StatisticsStore, KeysItsCacheByContent) {
  const TinyModel tiny;
  const TinyModel other({.seed = 2});
  const TempDir folder;
  const Store made(tiny, folder, 300);
  EXPECT_EQ(made.store.cache_file(0), Store(tiny, folder, 300).store.cache_file(0));
  EXPECT_NE(made.store.cache_file(0), made.store.cache_file(1));
  EXPECT_NE(made.store.cache_file(0), Store(tiny, folder, 310).store.cache_file(0));
  EXPECT_NE(made.store.cache_file(0), Store(tiny, folder, 300, at::kFloat).store.cache_file(0));
  EXPECT_NE(made.store.cache_file(0), Store(other, folder, 300).store.cache_file(0));
}

TEST(StatisticsStore, ReadsTheTextOnlyWhenACovarianceIsMissing) {
  const TinyModel tiny;
  const TempDir folder;
  const CausalLM model = tiny.load();
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, options_in(folder, 300), tiny.config);
  int reads = 0;
  const StatisticsText text{"key", [&](Communicator&) {
                              ++reads;
                              return corpus;
                            }};
  for (int run = 0; run < 2; ++run) {
    StatisticsStore store(model, tiny.checkpoint, text, folder / "cache");
    load(store, std::vector<int64_t>{0, 1});
    EXPECT_EQ(reads, 1);
  }
}

/// A covariance with a changed number in it used to end in advice that harms: "ridge: 1".
TEST(StatisticsStore, NamesADamagedCacheFileAndMakesItAgain) {
  const TinyModel tiny;
  const TempDir folder;
  const std::vector<int64_t> layers{0};
  Store made(tiny, folder, 300);
  const auto intact = load(made.store, layers);
  const std::filesystem::path file = made.store.cache_file(0);
  for (const bool is_cut : {true, false}) {
    std::string bytes = read_text_file(file, "test");
    if (is_cut)
      bytes.resize(100);
    else
      bytes[bytes.size() - 1] = static_cast<char>(bytes.back() ^ 0x40);
    write_text_file(file, bytes);
    ::testing::internal::CaptureStderr();
    const auto again = load(made.store, layers);
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("warning: statistics: " + file.string() + ": "), std::string::npos) << log;
    EXPECT_EQ(log.find("download"), std::string::npos) << log;
    EXPECT_FALSE(made.store.from_cache(0));
    EXPECT_TRUE(again.front().moment_FF.equal(intact.front().moment_FF));
  }
}

TEST(ReadCorpus, RefusesFewerTokensThanDimensions) {
  const TinyModel tiny;
  const TempDir folder;
  try {
    read_corpus(*tiny.tokenizer, options_in(folder, 40), tiny.config);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("40 tokens, but covariances of this model's keys need at least 48"),
              std::string::npos);
  }
}

TEST(ReadCorpus, UsesASmallCorpusWholeAndSaysSo) {
  const TinyModel tiny;
  const TempDir folder;
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, options_in(folder, 1'000'000), tiny.config);
  EXPECT_TRUE(corpus.exhausted);
  EXPECT_LT(corpus.tokens, 1'000'000);
}

}  // namespace
}  // namespace lancet
