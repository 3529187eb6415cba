// The same work on fake devices and on the CPU: a tensor on the wrong device throws, and results are equal.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/edit/factor_store.h"
#include "lancet/edit/statistics_store.h"
#include "lancet/eval/evaluate.h"
#include "lancet/models/generate.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TempDir;
using testing::TinyModel;

std::vector<at::Device> fake_devices(int count) {
  testing::set_fake_device_count(count);
  std::vector<at::Device> devices;
  for (int i = 0; i < count; ++i) devices.emplace_back(at::kPrivateUse1, static_cast<at::DeviceIndex>(i));
  return devices;
}

struct EditRun {
  Tensor logits;
  std::vector<std::vector<TokenId>> generated;
  std::vector<std::pair<WeightId, Tensor>> deltas;
  Tallies metrics;
};

/// A whole edit: statistics, values, keys, solves, transaction, evaluation, generation.
EditRun run_on(const TinyModel& tiny, const std::vector<at::Device>& devices) {
  const TempDir folder;
  CausalLM model = tiny.load(at::kDouble, devices);
  const std::vector<EditRequest> requests = testing::some_requests(4);
  const auto editor = testing::editor_from(
      "{method: memit, layers: [0, 1, 2], covariance_weight: 20, values: {steps: 5, lr: 0.1, batch: 3}, contexts: "
      "['{}', 'I know. {}']}");
  StatisticsOptions options;
  options.corpus = testing::write_corpus(folder.path(), 40);
  options.tokens = 300;
  options.cache = folder / "cache";
  const CorpusTokens corpus = read_corpus(*tiny.tokenizer, options, tiny.config);
  StatisticsStore moments(model, tiny.checkpoint, corpus, options.cache);
  FactorStore factors(moments, model.placement(), tiny.config.d_ffn, options.cache, 0.0);
  factors.prepare(std::vector<int64_t>{0, 1, 2});  // writes the cache: what is used below has been on disk
  const EditContext context(model, *tiny.tokenizer, editor->contexts()->templates,
                            {.factor = [&](int64_t layer) { return factors.load(layer); }});
  const EvaluationPlan plan(*tiny.tokenizer, requests, {.groups = {MetricGroup::kEfficacy, MetricGroup::kGeneration}});
  EditRun run;
  WeightTransaction transaction(model);
  EditorState state = editor->make_state();
  editor->edit(context, requests, state, transaction);
  for (const WeightTransaction::Entry& entry : transaction.entries()) {
    EXPECT_EQ(entry.master.device(), model.placement().device_of(entry.id.layer));
    run.deltas.emplace_back(entry.id, (entry.master - entry.original).to(Placement::host()));
  }
  const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{{1, 17, 400, 8, 99}, {1, 5}});
  run.logits = model.logits(model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers())[0])
                   .to(Placement::host());
  run.metrics = plan.run(model, "test").totals;
  const GenerateRow row{{1, 17, 400}, 6};
  run.generated = generate(model, std::span(&row, 1), {});
  return run;
}

class OnFakeDevices : public ::testing::TestWithParam<int> {};

TEST_P(OnFakeDevices, AnEditEqualsTheCpus) {
  const TinyModel tiny;
  const EditRun cpu = run_on(tiny, {Placement::host()});
  const EditRun fake = run_on(tiny, fake_devices(GetParam()));
  EXPECT_LE(nmse(fake.logits, cpu.logits), 1e-24);
  EXPECT_EQ(fake.generated, cpu.generated);
  ASSERT_EQ(fake.deltas.size(), 3u);
  for (size_t i = 0; i < cpu.deltas.size(); ++i) EXPECT_LE(nmse(fake.deltas[i].second, cpu.deltas[i].second), 1e-20);
  EXPECT_EQ(fake.metrics.at("efficacy_argmax").hits, cpu.metrics.at("efficacy_argmax").hits);
  EXPECT_EQ(fake.metrics.at("efficacy_prob").hits, cpu.metrics.at("efficacy_prob").hits);
}

INSTANTIATE_TEST_SUITE_P(Counts, OnFakeDevices, ::testing::Values(1, 2, 3));

TEST(FakeDevices, ABatchThatMemoryDoesNotSufficeForIsHalved) {
  const TinyModel tiny;
  const CausalLM model = tiny.load(at::kDouble, fake_devices(1));
  const std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(6), testing::kContexts);
  ValueOptions options{.steps = 3, .lr = 0.1, .batch = 6};
  const int64_t loaded = testing::fake_bytes_live(0);
  testing::reset_fake_peaks();
  const OptimizedValues roomy = optimize_values(model, requests, 1, options);
  const int64_t most = testing::fake_bytes_peak(0) - loaded;
  EXPECT_EQ(roomy.batching.halvings, 0);
  EXPECT_EQ(roomy.batching.largest, 6);

  testing::set_fake_memory_limit(loaded + most * 2 / 3);
  const OptimizedValues tight = optimize_values(model, requests, 1, options);
  EXPECT_GE(tight.batching.halvings, 1);
  EXPECT_LT(tight.batching.largest, 6);
  EXPECT_LE(nmse(tight.z_ND, roomy.z_ND), 1e-20);
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(tight.losses[i].size(), roomy.losses[i].size());

  testing::set_fake_memory_limit(loaded + most / 100);
  EXPECT_THROW(optimize_values(model, requests, 1, options), PlacementError);
  testing::set_fake_memory_limit(0);
}

TEST(FakeDevices, AForwardCrossesOncePerStage) {
  const TinyModel tiny;
  const CausalLM model = tiny.load(at::kFloat, fake_devices(2));
  EXPECT_EQ(model.weight({WeightKind::kDown, 0}).device().index(), 0);
  EXPECT_EQ(model.weight({WeightKind::kDown, 3}).device().index(), 1);
  const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{{1, 17, 400, 8, 99}});
  testing::reset_fake_copies();
  model.logits(model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers())[0]);
  // ids; cosines and sines for either stage; the hidden state once
  EXPECT_EQ(testing::fake_copies_across(), 1u + 2u * 2u + 1u);
}

TEST(FakeDevices, AHookThatMovesATensorIsNamed) {
  const TinyModel tiny;
  const CausalLM model = tiny.load(at::kFloat, fake_devices(2));
  const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{{1, 17}});
  HookSet hooks;
  hooks.replace({HookPoint::kMlpOut, 2}, [](const Tensor& value) { return value.to(Placement::host()); });
  try {
    model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers(), hooks);
    FAIL();
  } catch (const PlacementError& error) {
    EXPECT_NE(std::string(error.what()).find("hook at layer 2, MLP output: expected on"), std::string::npos)
        << error.what();
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

TEST(ParseDevices, RefusesMoreThanOneAndWhatIsNotThere) {
  EXPECT_THROW(parse_devices(std::vector<std::string>{"cpu", "cpu"}), PlacementError);
  EXPECT_THROW(parse_devices(std::vector<std::string>{"cuda:900"}), PlacementError);
  EXPECT_THROW(parse_devices(std::vector<std::string>{"gpu"}), PlacementError);
  EXPECT_EQ(parse_devices(std::vector<std::string>{"cpu"}).front(), Placement::host());
}

}  // namespace
}  // namespace lancet
