// Quantised bases on fake devices: what each device holds, and edits that equal the CPU's.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>

#include "lancet/core/strings.h"
#include "lancet/models/batching.h"
#include "lancet/models/memory.h"
#include "lancet/models/stored_part.h"
#include "lancet/training/values.h"
#include "support/edit_run.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/gptq_model.h"
#include "support/mxfp4_model.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::EditRun;
using testing::fake_devices;
using testing::nmse;
using testing::run_edit;
using testing::TinyModel;

constexpr testing::TinyShape kSixLayers{.n_layers = 6, .d_model = 64, .d_ffn = 192};
const at::Device kCpu = Placement::host();

/// A model whose matrices lie quantised in the checkpoint, or are quantised while they are loaded.
struct Base {
  const char* name;
  std::optional<Quantiser> quantiser = {};  ///< nullopt: the checkpoint is GPTQ's

  TinyModel model(const testing::TinyShape& shape = kSixLayers) const {
    return quantiser ? TinyModel(shape) : testing::gptq_model(shape);
  }
};
constexpr Base kBases[] = {{"int8", Quantiser::kInt8}, {"nf4", Quantiser::kNf4}, {"fp8", Quantiser::kFloat8}, {"gptq"}};

std::vector<std::vector<at::Device>> some_splits() {
  const std::vector<at::Device> fake = fake_devices(3);
  return {{fake[0]}, {fake[0], fake[1]}, fake, {fake[0], kCpu}, {kCpu, fake[0]}, {fake[0], fake[1], kCpu}};
}

/// What a device has to hold: matrices by the sizes that their formats say, all else in full precision.
int64_t least_bytes(const TinyModel& tiny, const Base& base, const std::set<WeightId>& edited,
                    const Placement& placement, at::Device device) {
  const std::vector<WeightId> matrices = testing::layer_matrices(tiny.config);
  int64_t bytes = 0;
  for (const WeightSpec& spec : resolve_weights(tiny.config, tiny.checkpoint)) {
    if (weight_device(placement, spec.id) != device) continue;
    const bool is_kept = std::ranges::find(matrices, spec.id) != matrices.end() && !edited.contains(spec.id);
    if (!is_kept)
      bytes += spec.size() * static_cast<int64_t>(c10::elementSize(placement.weight_dtype()));
    else if (base.quantiser)
      bytes += quantised_bytes(*base.quantiser, spec.shape[0], spec.shape[1]);
    else
      bytes += read_packed(tiny.checkpoint, spec.packed.front(), kCpu).bytes();
  }
  return bytes;
}

TEST(QuantisedOnDevices, ALoadedModelTakesItsPackedBytesAndNoMore) {
  const std::set<WeightId> edited{{WeightKind::kDown, 1}, {WeightKind::kUp, 4}};
  for (const Base& base : kBases) {
    const TinyModel tiny = base.model();
    for (const std::vector<at::Device>& devices : some_splits()) {
      const Placement placement = plan_placement(tiny.config.n_layers, devices, at::kFloat);
      std::vector<int64_t> before;
      for (int i = 0; i < 3; ++i) before.push_back(testing::fake_bytes_live(i));
      const CausalLM model =
          CausalLM::load(tiny.checkpoint, tiny.config, placement, {{edited.begin(), edited.end()}, base.quantiser});
      for (const at::Device device : devices) {
        if (device == kCpu) continue;
        const int64_t live = testing::fake_bytes_live(device.index()) - before[static_cast<size_t>(device.index())];
        const int64_t least = least_bytes(tiny, base, edited, placement, device);
        EXPECT_GE(live, least) << base.name << " on " << placement.description();
        EXPECT_LE(static_cast<double>(live), 1.02 * static_cast<double>(least))
            << base.name << " on " << placement.description();
      }
    }
  }
}

/// Autograd keeps what a product was made of, but no matrix.
TEST(QuantisedOnDevices, NoUnpackedMatrixIsHeldBetweenForwardAndBackward) {
  const at::Device device = fake_devices(1)[0];
  const auto packed = [&] { return quantise(torch::randn({256, 512}).to(device), Quantiser::kInt8, "w"); };
  constexpr int64_t kMatrix = 4 * 256 * 512, kRowsOfX = 4;
  for (const int64_t experts : {1, 2}) {
    std::vector<QuantisedRows> parts;
    for (int64_t expert = 0; expert < experts; ++expert) parts.push_back({packed(), 1, 0, 256});
    const QuantisedLinear matrix(std::move(parts), 0);
    const Tensor x = torch::ones({kRowsOfX, 512}).to(device).requires_grad_();
    const int64_t before = testing::fake_bytes_live(0);
    testing::reset_fake_peaks();
    Tensor y = matrix.linear(x, {});
    EXPECT_GE(testing::fake_bytes_peak(0) - before, experts * kMatrix) << "no matrix was unpacked";
    EXPECT_EQ(testing::fake_bytes_live(0) - before, static_cast<int64_t>(y.nbytes()));
    testing::reset_fake_peaks();
    y.sum().backward();
    EXPECT_GE(testing::fake_bytes_peak(0) - before, experts * kMatrix) << "no matrix was unpacked";
    y.reset();
    EXPECT_EQ(testing::fake_bytes_live(0) - before, static_cast<int64_t>(x.grad().nbytes()));
  }
}

void expect_equal_edits(const EditRun& run, const EditRun& cpu, const std::string& what) {
  EXPECT_LE(nmse(run.logits, cpu.logits), 1e-24) << what;
  EXPECT_EQ(run.generated, cpu.generated) << what;
  ASSERT_EQ(run.deltas.size(), testing::kEditRunLayers.size()) << what;
  for (size_t i = 0; i < cpu.deltas.size(); ++i) {
    EXPECT_LE(nmse(run.deltas[i].second, cpu.deltas[i].second), 1e-18) << what;
    EXPECT_GT(cpu.deltas[i].second.norm().item<double>(), 0) << what;
  }
  for (const char* metric : {"efficacy_argmax", "efficacy_prob"})
    EXPECT_EQ(run.metrics.at(metric).sum, cpu.metrics.at(metric).sum) << what;
  EXPECT_EQ(run.continuations, cpu.continuations) << what;
}

TEST(QuantisedOnDevices, AnEditEqualsTheCpus) {
  for (const Base& base : kBases) {
    const TinyModel tiny = base.model({.n_layers = 6});
    const EditRun cpu = run_edit(tiny, {kCpu}, alone(), base.quantiser);
    const std::vector<at::Device> fake = fake_devices(3);
    for (const std::vector<at::Device>& devices :
         {std::vector{fake[0]}, fake, std::vector{kCpu, fake[0]}, std::vector{fake[0], fake[1], kCpu}})
      expect_equal_edits(run_edit(tiny, devices, alone(), base.quantiser), cpu, base.name);
  }
}

/// Experts in one tensor, of which each is packed for itself; with the bits of the same model unpacked.
TEST(QuantisedOnDevices, AnEditOfExpertsInMxfp4IsTheUnpackedModels) {
  const testing::Mxfp4Twins twins = testing::mxfp4_twins(4);
  const EditRun plain = run_edit(twins.plain, {kCpu}, alone());
  const std::vector<at::Device> fake = fake_devices(2);
  for (const std::vector<at::Device>& devices : {fake, std::vector{fake[0], kCpu}})
    expect_equal_edits(run_edit(twins.packed, devices, alone()), plain, cat(devices.size(), " devices"));
}

TEST(QuantisedOnDevices, ExpertsInMxfp4TakeTheirPackedBytes) {
  const testing::Mxfp4Twins twins = testing::mxfp4_twins(2);
  const at::Device device = fake_devices(1)[0];
  const Placement placement = plan_placement(2, std::vector{device}, at::kBFloat16);
  const std::vector<WeightId> none, some{{WeightKind::kDown, 1}, {WeightKind::kGate, 0}};
  for (const std::vector<WeightId>& edited : {none, some}) {
    const int64_t before = testing::fake_bytes_live(0);
    const CausalLM model = CausalLM::load(twins.packed.checkpoint, twins.packed.config, placement, {edited, {}});
    const int64_t live = testing::fake_bytes_live(0) - before;
    const int64_t foretold = weight_bytes(twins.packed.config, {0, 2}, at::kBFloat16, {edited, {}});
    EXPECT_GE(live, foretold);
    EXPECT_LE(static_cast<double>(live), 1.03 * static_cast<double>(foretold));  // rotary tables
  }
}

/// What every quantised edit of other programs dies of: a hook's tensor, an optimised value or a solve that is on the
/// first device while its layer is on the second, or on the CPU.
TEST(QuantisedOnDevices, AnInt8BaseWithHooksOnTwoDevicesAndTheCpuKeepsEveryTensorInItsPlace) {
  const TinyModel tiny({.n_layers = 6});
  const std::vector<at::Device> devices{fake_devices(2)[0], fake_devices(2)[1], kCpu};
  const WeightId edited{WeightKind::kDown, 3};  // on the second device
  const QuantiseRule rule{{edited}, Quantiser::kInt8};
  const CausalLM model = tiny.load(at::kDouble, devices, rule), cpu = tiny.load(at::kDouble, {kCpu}, rule);
  const Placement& placement = model.placement();
  ASSERT_EQ(placement.stages().size(), 3u);
  ASSERT_EQ(placement.device_of(edited.layer), devices[1]);

  const auto keys_of = [](const CausalLM& of) {
    const torch::NoGradGuard no_grad;
    std::vector<Tensor> keys;
    HookSet hooks;
    for (int64_t layer = 0; layer < of.config().n_layers; ++layer)
      hooks.observe({HookPoint::kMlpKey, layer}, [&](const Tensor& key) { keys.push_back(key); });
    const TokenBatch batch = make_batch(testing::kRows);
    of.run_layers(of.embed(batch.ids_BT, batch.sequence), batch.sequence, of.all_layers(), hooks);
    return keys;
  };
  const std::vector<Tensor> keys = keys_of(model), expected_keys = keys_of(cpu);
  ASSERT_EQ(keys.size(), 6u);
  for (size_t layer = 0; layer < keys.size(); ++layer) {
    EXPECT_EQ(keys[layer].device(), placement.device_of(static_cast<int64_t>(layer)));
    EXPECT_LE(nmse(keys[layer], expected_keys[layer]), 1e-24);
  }

  const std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(4), testing::kContexts);
  const ValueOptions options{.steps = 4, .lr = 0.1, .batch = 2};
  const OptimizedValues values = optimize_values(model, requests, edited.layer, options, {alone()});
  EXPECT_EQ(values.z_ND.device(), devices[1]);
  EXPECT_LE(nmse(values.z_ND, optimize_values(cpu, requests, edited.layer, options, {alone()}).z_ND), 1e-20);

  // statistics, values, keys, solves, evaluation and text; masters are looked at in there
  expect_equal_edits(run_edit(tiny, devices, alone(), Quantiser::kInt8),
                     run_edit(tiny, {kCpu}, alone(), Quantiser::kInt8), "the whole edit");
}

TEST(QuantisedOnRanks, WithSeveralDevicesEachDoTheSameEdit) {
  testing::set_fake_device_count(testing::kMaxFakeDevices);
  for (const Base& base : {kBases[1], kBases[3]}) {
    const TinyModel tiny = base.model({});
    const EditRun single = run_edit(tiny, {kCpu}, alone(), base.quantiser);
    std::vector<EditRun> runs(2);
    testing::run_ranks(2, [&](Communicator& ranks) {
      const auto rank = static_cast<int>(ranks.rank());
      runs[static_cast<size_t>(rank)] = run_edit(tiny, testing::fake_devices(3 * rank, 3), ranks, base.quantiser);
    });
    expect_equal_edits(runs[0], single, base.name);
    for (size_t i = 0; i < single.weights.size(); ++i)
      EXPECT_TRUE(runs[1].weights[i].second.equal(runs[0].weights[i].second)) << base.name << ": grown apart";
  }
}

}  // namespace
}  // namespace lancet
