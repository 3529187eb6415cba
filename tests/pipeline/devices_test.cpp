// Does the same work on fake devices and on the CPU: a tensor on the wrong device throws, and results are equal.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/eval/evaluate.h"
#include "lancet/kernels/gram.h"
#include "lancet/models/generate.h"
#include "lancet/statistics/derived_store.h"
#include "lancet/statistics/statistics_store.h"
#include "lancet/training/values.h"
#include "support/edit_run.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::EditRun;
using testing::nmse;
using testing::run_edit;
using testing::TempDir;
using testing::TinyModel;

using testing::fake_devices;

/// Layers for every device.
constexpr testing::TinyShape kDeep{.n_layers = 9};

void expect_equals_the_cpus(const std::vector<at::Device>& devices) {
  const TinyModel tiny(kDeep);
  const EditRun cpu = run_edit(tiny, {Placement::host()}, alone());
  const EditRun fake = run_edit(tiny, devices, alone());
  EXPECT_LE(nmse(fake.logits, cpu.logits), 1e-24);
  EXPECT_EQ(fake.generated, cpu.generated);
  ASSERT_EQ(fake.deltas.size(), 3u);
  for (size_t i = 0; i < cpu.deltas.size(); ++i) EXPECT_LE(nmse(fake.deltas[i].second, cpu.deltas[i].second), 1e-20);
  EXPECT_EQ(fake.metrics.at("efficacy_argmax").sum, cpu.metrics.at("efficacy_argmax").sum);
  EXPECT_EQ(fake.metrics.at("efficacy_prob").sum, cpu.metrics.at("efficacy_prob").sum);
}

class OnFakeDevices : public ::testing::TestWithParam<int> {};

TEST_P(OnFakeDevices, AnEditEqualsTheCpus) { expect_equals_the_cpus(fake_devices(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Counts, OnFakeDevices, ::testing::Values(1, 2, 3, 5, 8));

TEST(MixedDevices, AnEditOfOffloadedLayersEqualsTheCpus) {
  const std::vector<at::Device> fake = fake_devices(2);
  const at::Device host = Placement::host();
  expect_equals_the_cpus({host, fake[0]});  // layers 0-4, the edited ones, on the CPU
  expect_equals_the_cpus({fake[0], host});
  expect_equals_the_cpus({fake[0], host, host, fake[1]});
}

TEST(FakeDevices, ABatchThatMemoryDoesNotSufficeForIsHalved) {
  const TinyModel tiny;
  const CausalLM model = tiny.load(at::kDouble, fake_devices(1));
  const std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(6), testing::kContexts);
  ValueOptions options{.steps = 3, .lr = 0.1, .batch = 6};
  const int64_t loaded = testing::fake_bytes_live(0);
  testing::reset_fake_peaks();
  const OptimizedValues roomy = optimize_values(model, requests, 1, options, {alone()});
  const int64_t most = testing::fake_bytes_peak(0) - loaded;
  EXPECT_EQ(roomy.batching.halvings, 0);
  EXPECT_EQ(roomy.batching.largest, 6);

  testing::set_fake_memory_limit(loaded + most * 2 / 3);
  const OptimizedValues tight = optimize_values(model, requests, 1, options, {alone()});
  EXPECT_GE(tight.batching.halvings, 1);
  EXPECT_LT(tight.batching.largest, 6);
  EXPECT_LE(nmse(tight.z_ND, roomy.z_ND), 1e-20);
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(tight.losses[i].size(), roomy.losses[i].size());

  testing::set_fake_memory_limit(loaded + most / 100);
  EXPECT_THROW(optimize_values(model, requests, 1, options, {alone()}), PlacementError);
  testing::set_fake_memory_limit(0);
}

TEST(FakeDevices, AForwardCrossesOncePerStage) {
  const TinyModel tiny(kDeep);
  for (const int64_t stages : {1, 2, 3, 5, 8}) {
    const CausalLM model = tiny.load(at::kFloat, fake_devices(static_cast<int>(stages)));
    EXPECT_EQ(model.weight({WeightKind::kDown, 0}).device().index(), 0);
    EXPECT_EQ(model.weight({WeightKind::kDown, 8}).device().index(), stages - 1);
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{{1, 17, 400, 8, 99}});
    testing::reset_fake_copies();
    const Tensor logits = model.logits(
        model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers())[0]);
    // ids; the positions for each stage; the hidden state between stages
    EXPECT_EQ(testing::fake_copies_across(), 1 + stages + (stages - 1));
    logits.to(Placement::host());
    EXPECT_EQ(testing::fake_copies_across(), 1 + stages + (stages - 1) + 1);
  }
}

TEST(FakeDevices, ATiedHeadLiesWithItsStageAndIsNotCopiedPerPass) {
  const TinyModel tiny({.tied_embeddings = true});
  const std::vector<at::Device> devices = fake_devices(2);
  const CausalLM model = tiny.load(at::kFloat, devices);
  EXPECT_EQ(model.weight({WeightKind::kEmbedding}).device(), devices[0]);
  EXPECT_EQ(model.weight({WeightKind::kHead}).device(), devices[1]);
  const CausalLM alone = tiny.load(at::kFloat, {devices[0]});
  EXPECT_TRUE(alone.weight({WeightKind::kEmbedding}).is_same(alone.weight({WeightKind::kHead})));
  const Tensor h_ND = torch::ones({3, 32}, torch::TensorOptions().device(devices[1]));
  testing::reset_fake_copies();
  model.logits(h_ND);
  EXPECT_EQ(testing::fake_copies_across(), 0);
}

void expect_misplaced(const std::function<void()>& work, const std::string& message) {
  try {
    work();
    FAIL() << message;
  } catch (const PlacementError& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(FakeDevices, WhatComesToAStageFromAnotherDeviceIsNamed) {
  const TinyModel tiny;
  const CausalLM model = tiny.load(at::kFloat, fake_devices(2));  // layers 0-1, 2-3
  TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{{1, 17}});
  const Tensor h_BTD = model.embed(batch.ids_BT, batch.sequence);
  const auto run = [&](const Tensor& h, LayerRange range) { return model.run_layers(h, batch.sequence, range); };
  expect_misplaced(
      [&] {
        run(h_BTD.to(Placement::host()), {0, 4});
      },
      "hidden states into layer 0: expected on fake:0, found on cpu");
  expect_misplaced([&] { run(h_BTD, {3, 4}); }, "hidden states into layer 3: expected on fake:1, found on fake:0");
  EXPECT_EQ(run(h_BTD, {2, 4}).device().index(), 1);  // from the stage before
  expect_misplaced([&] { model.logits(h_BTD[0]); }, "hidden states for the head: expected on fake:1, found on fake:0");
  expect_misplaced([&] { model.embed(batch.ids_BT.to(h_BTD.device()), batch.sequence); },
                   "token ids: expected on cpu, found on fake:0");

  KeyValues cache;
  batch.sequence.record = &cache;
  run(h_BTD, {0, 4});
  batch.sequence.record = nullptr;
  batch.sequence.prefix = &cache;
  batch.sequence.positions_BT = batch.sequence.positions_BT + 2;
  KeyValues moved;
  for (int64_t layer = 0; layer < 4; ++layer) {
    KeyValuePair pair = cache.layer(layer);
    if (layer == 2) pair.key = pair.key.to(h_BTD.device());
    moved.record(layer, {pair.key.transpose(1, 2), pair.value.transpose(1, 2)});
  }
  moved.end_pass(cache.valid_BP());
  batch.sequence.prefix = &moved;
  expect_misplaced([&] { run(h_BTD, {0, 4}); }, "cached keys of layer 2: expected on fake:1, found on fake:0");
}

TEST(FakeDevices, GenerationIsThatOfTheHostWhileRowsLeave) {
  const TinyModel tiny(kDeep);
  std::vector<GenerateRow> rows;  // rows that end early, at several steps
  for (int64_t i = 0; i < 13; ++i) rows.push_back({testing::kRows[static_cast<size_t>(i % 3)], (i * 5) % 14});
  for (const SamplingOptions& sampling :
       {SamplingOptions{}, SamplingOptions{.temperature = 1.5, .top_k = 4, .top_p = 0.9, .seed = 3},
        SamplingOptions{.top_k = 0, .seed = 3}, SamplingOptions{.top_k = 0, .top_p = 0.8, .seed = 3}}) {
    const GenerateOptions options{.eos_ids = {}, .sampling = sampling};
    const auto expected = generate(tiny.load(at::kDouble), rows, options);
    for (const int stages : {1, 3, 8})
      EXPECT_EQ(generate(tiny.load(at::kDouble, fake_devices(stages)), rows, options), expected) << stages;
  }
}

TEST(FakeDevices, WhatWasOnDiskComesBackOnItsDevice) {
  const TinyModel tiny(kDeep);
  const TempDir folder;
  const CausalLM model = tiny.load(at::kDouble, fake_devices(3));
  const std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(4), testing::kContexts);
  const ValueStore store(folder / "values", "test");
  const ValueOptions options{.steps = 3, .lr = 0.1, .batch = 2};
  const OptimizedValues first = optimize_values(model, requests, 4, options, {alone(), &store});
  const OptimizedValues again = optimize_values(model, requests, 4, options, {alone(), &store});
  EXPECT_EQ(again.batching.resumed, 4);
  EXPECT_EQ(again.z_ND.device(), model.placement().device_of(4));
  EXPECT_TRUE(again.z_ND.equal(first.z_ND));

  StatisticsOptions text;
  text.corpus = testing::write_corpus(folder.path(), 40);
  text.tokens = 300;
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, text, tiny.config);
  const std::vector<int64_t> layers{2, 4};
  PartialSums saves(folder.path(), "test", 0);
  const std::vector<Covariance> whole = collect_covariances(model, corpus, layers, alone(), {.saves = &saves});
  ASSERT_TRUE(saves.load(std::vector(2, tiny.config.key_shape(0))).has_value());
  const std::vector<Covariance> resumed = collect_covariances(model, corpus, layers, alone(), {.saves = &saves});
  for (size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(resumed[i].moment_FF.device(), model.placement().device_of(layers[i]));
    EXPECT_TRUE(resumed[i].moment_FF.equal(whole[i].moment_FF));
    EXPECT_EQ(resumed[i].tokens, 300);
  }
}

/// Sums in turns have the bits of sums without overlap, however many chunks are under way.
TEST(FakeDevices, OverlapLeavesTheBitsOfStatistics) {
  const TinyModel tiny({.n_layers = 6, .d_model = 32, .d_ffn = 48});
  CorpusTokens corpus;
  for (size_t i = 0; i < 1200; ++i) {  // several chunks of 8192 tokens
    corpus.documents.emplace_back();
    for (size_t t = 0; t < 48; ++t)
      corpus.documents.back().push_back(static_cast<TokenId>((i * 31 + t * t * 7) % 4096));
    corpus.tokens += 48;
  }
  Placement placement = plan_placement(6, fake_devices(3), at::kFloat);
  const auto collect = [&](int64_t under_way) {
    placement.set_batches_under_way(under_way);
    const CausalLM model = CausalLM::load(tiny.checkpoint, tiny.config, placement);
    return collect_covariances(model, corpus, std::vector<int64_t>{0, 3, 5}, alone());
  };
  const std::vector<Covariance> alone = collect(1), together = collect(3);
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_TRUE(together[i].moment_FF.equal(alone[i].moment_FF)) << i;
}

TEST(FakeDevices, RowsOfAnotherDeviceAreNotSummed) {
  const at::Device device = fake_devices(1)[0];
  GramAccumulator sum(4, device);
  expect_misplaced([&] { sum.add(torch::ones({2, 4})); }, "rows for a second moment: expected on fake:0, found on cpu");
}

TEST(FakeDevices, AHookThatMovesATensorIsNamed) {
  const TinyModel tiny;
  const CausalLM model = tiny.load(at::kFloat, fake_devices(2));
  const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{{1, 17}});
  HookSet hooks;
  hooks.replace({HookPoint::kMlpOut, 2}, [](const Tensor& value) { return value.to(Placement::host()); });
  try {
    model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), hooks);
    FAIL();
  } catch (const PlacementError& error) {
    EXPECT_NE(std::string(error.what()).find("hook at layer 2, MLP output: expected on"), std::string::npos)
        << error.what();
  }
}

TEST(FakeDevices, ScoresEqualTheCpus) {
  const TinyModel tiny(kDeep);
  std::vector<Continuation> continuations;
  for (TokenId i = 0; i < 90; ++i)  // long and short documents
    for (const TokenId last : {8, 9})
      continuations.push_back({std::vector<TokenId>(static_cast<size_t>(1 + 2 * i), 100 + i), {17, last, i}});
  EXPECT_GT(scoring_size(continuations).tokens, scoring_size(continuations).pack_tokens) << "one pack";
  const std::vector<ContinuationScore> cpu = score_continuations(tiny.load(), continuations, "test", alone());
  for (const int devices : {1, 2, 3, 8}) {
    const CausalLM model = tiny.load(at::kDouble, fake_devices(devices));
    const std::vector<ContinuationScore> fake = score_continuations(model, continuations, "test", alone());
    for (size_t i = 0; i < cpu.size(); ++i) {
      EXPECT_NEAR(fake[i].nll, cpu[i].nll, 1e-12) << i;
      EXPECT_EQ(fake[i].argmax, cpu[i].argmax) << i;
    }
  }
}

TEST(FakeDevices, ADeltaOnTheWrongDeviceIsNamed) {
  const TinyModel tiny;
  CausalLM model = tiny.load(at::kFloat, fake_devices(2));
  WeightTransaction transaction(model);
  try {
    transaction.apply({WeightKind::kDown, 3}, DenseDelta{torch::zeros({32, 48})});
    FAIL();
  } catch (const PlacementError& error) {
    EXPECT_NE(std::string(error.what()).find("model.layers.3.mlp.down_proj.weight: delta: expected on"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace lancet
