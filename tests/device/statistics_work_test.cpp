// What the statistics pass brings to a device, counted: of a chunk each thing once, whatever the number of layers.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/models/batching.h"
#include "lancet/statistics/covariance.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::FakeWork;

/// Documents that begin alike, of two chunks' tokens.
CorpusTokens shared_beginnings() {
  CorpusTokens corpus;
  for (TokenId i = 0; i < 200; ++i) {
    std::vector<TokenId>& document = corpus.documents.emplace_back();
    for (TokenId t = 0; t < 60; ++t) document.push_back(t < 4 ? 1 + t : (i * 131 + t * 7) % 4096);
    corpus.tokens += 60;
  }
  return corpus;
}

/// Measures a whole pass over the model's first layers.
FakeWork work_of_pass(const CausalLM& model, const CorpusTokens& corpus, const std::vector<int64_t>& layers) {
  const FakeWork before = testing::fake_work();
  collect_covariances(model, corpus, layers, alone());
  return testing::fake_work() - before;
}

int64_t chunks_of(const CausalLM& model, const CorpusTokens& corpus) {
  const int64_t tokens = statistics_chunk_tokens(model.config(), model.placement().weight_dtype());
  return static_cast<int64_t>(plan_packs(corpus.documents, tokens).size());
}

TEST(StatisticsWork, BringsEachThingOfAChunkToADeviceOnce) {
  const testing::TinyModel tiny({.n_layers = 4});
  const CorpusTokens corpus = shared_beginnings();
  for (const int devices : {1, 2}) {
    const CausalLM model = tiny.load(at::kBFloat16, testing::fake_devices(devices));
    const int64_t chunks = chunks_of(model, corpus);
    ASSERT_GE(chunks, 2);
    const FakeWork all = work_of_pass(model, corpus, {0, 1, 2, 3});
    // Ids to the first device; to each its positions, the documents' two maps of places, and the counts.
    EXPECT_EQ(all.uploads, chunks * (1 + devices * 4)) << devices << " device(s)";
    EXPECT_EQ(all.uploads_under_way, all.uploads) << "nobody waits for one";
    EXPECT_EQ(work_of_pass(model, corpus, {1, 3}).uploads, all.uploads) << "of more layers there is nothing more";
  }
}

/// A sum is folded once a chunk, and a chunk is as large as the device has room for.
TEST(StatisticsWork, TakesLargerChunksWhereTheDeviceHasRoom) {
  const testing::TinyModel tiny({.n_layers = 2});
  const CorpusTokens corpus = shared_beginnings();
  const std::vector<int64_t> layers{0, 1};
  const at::Device gpu(at::kCUDA, 0), fake = testing::fake_devices(1).front();
  const auto chunk_on = [&](at::Device device, int64_t room) {
    Placement placement({device, device}, at::kFloat);
    placement.set_room({{device, room}});
    return statistics_chunk_tokens(tiny.config, placement, layers);
  };
  const int64_t usual = statistics_chunk_tokens(tiny.config, at::kFloat);
  EXPECT_EQ(chunk_on(gpu, 1'000'000), usual);
  EXPECT_EQ(chunk_on(gpu, int64_t{1} << 40), 16384);
  EXPECT_EQ(chunk_on(fake, int64_t{1} << 40), usual) << "it holds all scores";
  EXPECT_EQ(statistics_chunk_tokens(tiny.config, {{at::kCPU, at::kCPU}, at::kFloat}, layers), usual);
  const CausalLM model = CausalLM::load(tiny.checkpoint, tiny.config, Placement({fake, fake}, at::kFloat));
  const auto moments_of = [&](int64_t tokens) {
    return collect_covariances(model, corpus, layers, alone(), {.chunk_tokens = tokens});
  };
  const FakeWork before = testing::fake_work();
  const std::vector<Covariance> small = moments_of(usual);
  const FakeWork between = testing::fake_work();
  const std::vector<Covariance> large = moments_of(16384);
  EXPECT_EQ((testing::fake_work() - between).uploads * 2, (between - before).uploads) << "one chunk in place of two";
  for (size_t i = 0; i < layers.size(); ++i) {
    const Tensor off = (large[i].moment_FF - small[i].moment_FF).to(at::kCPU);
    EXPECT_LE(off.abs().max().item<double>(), 1e-5 * small[i].moment_FF.abs().max().item<double>());
  }
}

/// Documents that share nothing have neither maps nor counts.
TEST(StatisticsWork, BringsNoCountsOfDocumentsThatShareNothing) {
  const testing::TinyModel tiny({.n_layers = 2});
  CorpusTokens corpus = shared_beginnings();
  for (size_t i = 0; i < corpus.documents.size(); ++i) corpus.documents[i][0] = static_cast<TokenId>(i);
  const CausalLM model = tiny.load(at::kBFloat16, testing::fake_devices(1));
  EXPECT_EQ(work_of_pass(model, corpus, {0, 1}).uploads, chunks_of(model, corpus) * 2);
}

}  // namespace
}  // namespace lancet
