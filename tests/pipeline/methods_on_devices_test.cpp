// Every method on fake devices: two batches, the second with the state that the first left, equal the CPU's.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/strings.h"
#include "support/edit_run.h"
#include "support/edit_setup.h"
#include "support/fake_device.h"
#include "support/family_models.h"
#include "support/gptq_model.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TinyModel;

/// memit with targets in chunks, beside the methods.
constexpr const char* kChunked = "memit, chunked";
/// Two methods whose batches end with a repair, beside the methods.
constexpr const char *kRepaired = "memit, repaired", *kNullSpaceRepaired = "alphaedit, repaired";
constexpr const char* kLocated = "values: {steps: 2, lr: 0.1}, contexts: ['{}', 'I know. {}']";

std::string options_of(const std::string& method) {
  static const std::map<std::string, std::string> kOptions{
      {"memit",
       "layers: [0, 1, 2], covariance_weight: 20, history: true, norm_anchor: {mode: rescale, limit: 10}, revive: "
       "{energy: 0.1}, "
       "error_feedback: true"},
      {kChunked, "layers: [0, 1, 2], covariance_weight: 20, history: true"},
      {kRepaired, "layers: [0, 1], covariance_weight: 20, repair: {steps: 2, batch: 2, revisit: 1, margin: 5}"},
      {kNullSpaceRepaired,
       "layers: [1, 2], null_space_below: 1.0, repair: {steps: 2, batch: 2, revisit: 1, margin: 5}"},
      {"rome", "layers: [0, 2]"},
      {"r-rome", "layers: [2]"},
      {"emmet", "layers: [1, 2], covariance_weight: 20, identity_weight: 0.1, equal_keys: mean, rect: {keep: 0.4}"},
      {"alphaedit", "layers: [0, 2], null_space_below: 1.0, blue: true, equal_keys: split"},
      {"pmet", "layers: [1, 2], norm_anchor: {mode: skip, limit: 10}"},
      {"nse", "layers: [0, 1, 2], targets: replay, residual_above: auto, neurons: 0.7"},
      {"evoedit", "layers: [0, 2], null_space_below: 1.0, targets: replay"},
      {"betaedit", "layers: [1, 2], null_space_below: 1.0, covariance_weight: 2, ridge: 0.5, refresh: 2"},
      {"zerounlearn", "layers: [1, 2], covariance_weight: 20"},
      {"ultraedit", "modules: {gate: [0, 2], up: [1], down: [3]}, lr: 1e-3, batch: 2"},
      {"stableedit", "modules: {down: [0, 2, 3]}, lr: 1e-3, batch: 2, tokens: all, ridge: 2"},
      {"ft", "modules: {down: [0, 3]}, steps: 3"},
      {"ft-l", "modules: {gate: [1], down: [2]}, steps: 3, norm_constraint: 1e-3"},
      {"crispedit", "modules: {down: [0, 3]}, steps: 3, batch: 2, energy: 0.7, projected: steps, neighbours: 1"},
      {"ft-m",
       "modules: {up: [0], down: [3]}, steps: 3, order: breadth-first, batch: 2, weight_decay: 0.1, revisit: 2, prune: "
       "{}"}};
  const bool is_located = kOptions.at(method).find("modules") == std::string::npos;
  std::string located = is_located ? cat(", ", kLocated) : "";
  if (method == kChunked) located.replace(located.find("lr: 0.1"), 7, "lr: 0.1, chunk_tokens: 2");
  return cat("{method: ", method.substr(0, method.find(',')), ", ", kOptions.at(method), located, "}");
}

/// `layers: [0, 1, 2]` is of the layers that have an MLP, in their order.
std::string options_for(const ModelConfig& config, const std::string& method) {
  std::string options = options_of(method);
  const std::vector<int64_t> layers = config.layers_with_mlp();
  const std::string all = "layers: [0, 1, 2]";
  if (const size_t at = options.find(all); at != std::string::npos)
    options.replace(at, all.size(), cat("layers: [", layers[0], ", ", layers[1], ", ", layers[2], "]"));
  return options;
}

struct Setting {
  std::optional<Quantiser> quantiser = {};  ///< what packs the matrices that are not edited
  SolveOn solve_on = SolveOn::kDevice;
  int64_t batches = 2;  ///< the second goes on with the state that the first left
};

/// The changes of all weights, on the host.
std::vector<Tensor> changes_on(const TinyModel& tiny, const std::string& method, const std::vector<at::Device>& devices,
                               const Setting& setting = {}) {
  const auto editor = testing::editor_from(options_for(tiny.config, method));
  CausalLM model = tiny.load(at::kDouble, devices, {editor->targets(tiny.config), setting.quantiser}, setting.solve_on);
  const auto diagonal = [&](int64_t layer) {
    const KeyShape keys = tiny.config.key_shape(layer);
    const Tensor sizes = torch::linspace(0.5, 2.0, keys.width, torch::kDouble);
    return (keys.experts > 1 ? sizes.expand({keys.experts, -1}) : sizes)
        .diag_embed()
        .mT()  // column-major, as the cache's factors are
        .to(model.placement().solve_device(layer));
  };
  const EditContext context(
      model, *tiny.tokenizer, {"{}", "I know. {}"},
      {.factor = diagonal,
       .null_space = [&](int64_t layer) { return make_null_space(diagonal(layer), {1.0}, "test"); },
       .curvature =
           [&](int64_t layer) {
             const Tensor sizes = torch::linspace(0.5, 3.0, tiny.config.d_model, torch::kDouble);
             return Curvature{make_spectrum(diagonal(layer), 100, "test"),
                              make_spectrum(sizes.diag().to(model.placement().solve_device(layer)), 100, "test")};
           }},
      {alone()});
  const std::vector<EditRequest> requests = testing::some_requests(5);
  WeightTransaction transaction(model);
  EditorState state = editor->make_state();
  editor->edit(context, std::span(requests).first(3), state, transaction);
  if (setting.batches > 1) editor->edit(context, std::span(requests).subspan(3), state, transaction);
  editor->finish(context, transaction);
  for (const auto& [name, tensor] : state.tensors) EXPECT_EQ(tensor.device(), Placement::host()) << name;
  std::vector<Tensor> changes;
  for (const WeightTransaction::Entry& entry : transaction.entries()) {
    changes.push_back((entry.master - entry.original).to(Placement::host()));
    const Tensor& weight = model.weight(entry.id);
    EXPECT_EQ(weight.device(), model.placement().device_of(entry.id.layer)) << method;
    EXPECT_TRUE(weight.to(Placement::host()).equal(entry.master.to(Placement::host()))) << method;
  }
  return changes;
}

/// All methods, and what is beside them.
std::vector<std::string> methods() {
  std::vector<std::string> names{kChunked, kRepaired, kNullSpaceRepaired};
  for (const EditorRow& row : editor_table()) names.emplace_back(row.name);
  return names;
}

TEST(MethodsOnFakeDevices, EqualTheCpus) {
  const TinyModel tiny;
  testing::set_fake_device_count(2);
  const std::vector<at::Device> devices{at::Device(at::kPrivateUse1, 0), at::Device(at::kPrivateUse1, 1)};
  for (const std::string& method : methods()) {
    const std::vector<Tensor> cpu = changes_on(tiny, method, {Placement::host()});
    const std::vector<Tensor> fake = changes_on(tiny, method, devices);
    ASSERT_EQ(fake.size(), cpu.size());
    ASSERT_FALSE(cpu.empty());
    for (size_t i = 0; i < cpu.size(); ++i) {
      EXPECT_GT(cpu[i].norm().item<double>(), 0) << method;
      EXPECT_LE(nmse(fake[i], cpu[i]), 1e-18) << method << ", weight " << i;
    }
  }
}

/// Runs on several devices, and beside a stage on the CPU: the same bits wherever solves are.
TEST(MethodsOnFakeDevices, HaveTheSameBitsWithSolvesOnTheHost) {
  const TinyModel tiny;
  testing::set_fake_device_count(3);
  const std::vector<at::Device> fake = testing::fake_devices(0, 3);
  for (const std::string& method : methods()) {
    for (const std::vector<at::Device>& devices : {fake, std::vector{fake[0], Placement::host(), fake[1]}}) {
      const std::vector<Tensor> there = changes_on(tiny, method, devices);
      const std::vector<Tensor> on_host = changes_on(tiny, method, devices, {.solve_on = SolveOn::kHost});
      ASSERT_FALSE(there.empty()) << method;
      ASSERT_EQ(on_host.size(), there.size()) << method;
      for (size_t i = 0; i < there.size(); ++i) {
        EXPECT_GT(there[i].norm().item<double>(), 0) << method;
        EXPECT_TRUE(on_host[i].equal(there[i])) << method << ", weight " << i << " on " << devices.size();
      }
    }
  }
}

/// Transposed and fused weights, windows, norms after the edited weight and experts, on three devices. What a method
/// keeps between batches is of no family: one batch shows what differs.
TEST(MethodsOnFakeDevices, EqualTheCpusInEveryFamily) {
  const std::vector<std::string> some{"memit", "pmet", "ft"}, one{"memit"};
  const Setting one_batch{.batches = 1};
  testing::set_fake_device_count(5);
  for (const testing::FamilyModel& family : testing::family_models()) {
    const TinyModel tiny(family.config, 3);
    for (const std::string& method : family.is_row ? one : some) {
      const std::vector<Tensor> cpu = changes_on(tiny, method, {Placement::host()}, one_batch);
      const std::vector<Tensor> fake = changes_on(tiny, method, testing::fake_devices(0, 3), one_batch);
      ASSERT_FALSE(cpu.empty());
      ASSERT_EQ(fake.size(), cpu.size());
      for (size_t i = 0; i < cpu.size(); ++i) {
        EXPECT_GT(cpu[i].norm().item<double>(), 0) << family.name << ", " << method;
        EXPECT_LE(nmse(fake[i], cpu[i]), 1e-18) << family.name << ", " << method << ", weight " << i;
      }
    }
  }
}

/// Whose base stays quantised but for the edited weights: as the checkpoint has it, or as it was quantised in loading.
TEST(MethodsOnFakeDevices, EqualTheCpusOnQuantisedBases) {
  testing::set_fake_device_count(3);
  const std::vector<at::Device> fake = testing::fake_devices(0, 3);
  for (const std::optional<Quantiser> quantiser : {std::optional<Quantiser>(), std::optional(Quantiser::kNf4)}) {
    const TinyModel tiny = quantiser ? TinyModel() : testing::gptq_model();
    for (const EditorRow& row : editor_table()) {
      const std::string method(row.name);
      const std::vector<Tensor> cpu = changes_on(tiny, method, {Placement::host()}, {quantiser});
      ASSERT_FALSE(cpu.empty()) << method;
      for (const std::vector<at::Device>& devices : {fake, std::vector{fake[0], Placement::host(), fake[1]}}) {
        const std::vector<Tensor> changes = changes_on(tiny, method, devices, {quantiser});
        ASSERT_EQ(changes.size(), cpu.size()) << method;
        for (size_t i = 0; i < cpu.size(); ++i) {
          EXPECT_GT(cpu[i].norm().item<double>(), 0) << method;
          EXPECT_LE(nmse(changes[i], cpu[i]), 1e-18) << method << ", weight " << i;
        }
      }
    }
  }
}

Tensor logits_on(const TinyModel& tiny, const std::vector<at::Device>& devices) {
  const torch::NoGradGuard no_grad;
  const CausalLM model = tiny.load(at::kDouble, devices);
  const TokenBatch batch = make_batch(testing::kRows);
  return model
      .logits(model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers())[2])
      .to(Placement::host());
}

TEST(FamiliesOnFakeDevices, SpeakAsOnTheCpuHoweverTheyAreSplit) {
  testing::set_fake_device_count(5);
  for (const testing::FamilyModel& family : testing::family_models()) {
    const TinyModel tiny(family.config, 3);
    const Tensor cpu = logits_on(tiny, {Placement::host()});
    for (const int count : {1, 2, 5})
      EXPECT_LE(nmse(logits_on(tiny, testing::fake_devices(0, count)), cpu), testing::kExactF64)
          << family.name << " on " << count;
  }
}

}  // namespace
}  // namespace lancet
