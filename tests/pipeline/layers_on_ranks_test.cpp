// One model whose layers lie on several ranks: an edit has the bits of one process's with the same split.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/distributed/thread_ranks.h"
#include "lancet/models/batching.h"
#include "lancet/models/layers_on_ranks.h"
#include "support/edit_run.h"
#include "support/fake_device.h"

namespace lancet {
namespace {

using testing::EditRun;
using testing::fake_devices;
using testing::run_edit;
using testing::TinyModel;

const testing::TinyShape kFiveLayers{.n_layers = 5};

/// Layers 0-1 on rank 0, 2-3 on rank 1, 4 on rank 2, each on the fake device of the rank's number.
Placement placement_over_ranks() {
  const std::vector<at::Device> devices = fake_devices(3);
  return {{{devices[0], 0, 2}, {devices[1], 2, 4, 1}, {devices[2], 4, 5, 2}}, at::kDouble};
}

/// One process's model, split likewise.
CausalLM load_whole(const TinyModel& tiny) {
  const std::vector<at::Device> fake = fake_devices(3);
  return CausalLM::load(tiny.checkpoint, tiny.config, {{fake[0], fake[0], fake[1], fake[1], fake[2]}, at::kDouble});
}

/// Runs `work` on rank 0 with a model whose layers lie on three ranks, and what reaches the other two.
void with_layers_on_ranks(const TinyModel& tiny, const std::function<void(CausalLM, LayerPeers&)>& work) {
  constexpr int64_t kCode = 7;
  run_as_ranks(3, [&](Communicator& ranks) {
    ranks.run_collectively("layers", [&] {
      if (!ranks.is_root()) {
        const at::Device own = fake_devices(static_cast<int>(ranks.rank()), 1).front();
        EXPECT_EQ(serve_layers(ranks, {.devices = {{own}}, .ignore_config_keys = {}}), kCode);
        return;
      }
      RankLinks links(ranks);
      try {
        Placement placement = placement_over_ranks();
        const auto peers = std::make_shared<LayerPeers>(links);
        peers->begin_load(tiny.checkpoint, placement, {});
        placement.put_elsewhere_on(*placement.last_device_here());
        CausalLM model = CausalLM::load_part(tiny.checkpoint, tiny.config, placement, {}, peers);
        peers->finish_load(tiny.checkpoint, tiny.config, placement);
        work(std::move(model), *peers);
      } catch (...) {
        end_service(links, kCode);
        if (links.has_failed()) ranks.barrier();
        throw;
      }
      end_service(links, kCode);
    });
  });
}

TEST(LayersOnRanks, AnEditHasTheBitsOfOneProcesss) {
  const TinyModel tiny(kFiveLayers);
  const EditRun whole = run_edit(tiny, load_whole(tiny), alone());
  EditRun parts;
  with_layers_on_ranks(tiny, [&](CausalLM model, LayerPeers&) { parts = run_edit(tiny, std::move(model), alone()); });
  ASSERT_EQ(parts.weights.size(), 3u);  // of layers 0, 1 and 2, which is rank 1's
  for (size_t i = 0; i < parts.weights.size(); ++i) {
    EXPECT_TRUE(parts.weights[i].second.equal(whole.weights[i].second)) << i;
    EXPECT_GT(parts.deltas[i].second.abs().max().item<double>(), 0);
    EXPECT_TRUE(parts.covariances[i].moment_FF.equal(whole.covariances[i].moment_FF)) << i;
  }
  EXPECT_TRUE(parts.logits.equal(whole.logits));
  EXPECT_EQ(parts.generated, whole.generated);
  EXPECT_EQ(parts.continuations, whole.continuations);
  EXPECT_EQ(parts.metrics.at("efficacy_prob").sum, whole.metrics.at("efficacy_prob").sum);
}

/// Gradients of terms beside the outputs of projections, of inputs that are watched, as fine-tuning has them; twice, as
/// parts of one loss.
std::vector<Tensor> term_gradients(const CausalLM& model) {
  const TokenBatch batch = make_batch(testing::kRows);
  std::vector<Tensor> terms, inputs(5);
  HookSet hooks;
  for (int64_t layer = 1; layer < 5; ++layer) {
    const at::Device device = model.placement().device_of(layer);
    const Tensor term_DD =
        torch::linspace(-1e-2, 1e-2, 32 * 32, torch::kDouble).view({32, 32}).to(device).requires_grad_(true);
    terms.push_back(term_DD);
    Tensor& input = inputs[static_cast<size_t>(layer)];
    hooks.observe({HookPoint::kMlpIn, layer}, [&input](const Tensor& x) { input = x; });
    hooks.replace({HookPoint::kMlpOut, layer},
                  [&input, term_DD](const Tensor& y) { return y + at::linear(input, term_DD); });
    hooks.replace({HookPoint::kAttnOut, layer}, [term_DD](const Tensor& y) { return y + at::linear(y, term_DD); });
  }
  Tensor loss = torch::zeros({}, torch::kDouble);
  for (int pass = 0; pass < 2; ++pass) {
    const Tensor h_BTD =
        model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), hooks);
    loss = loss + model.logits(h_BTD.flatten(0, 1)).log_softmax(1).select(1, 17 + pass).sum().to(Placement::host());
  }
  std::vector<Tensor> gradients = torch::autograd::grad({loss}, terms);
  for (Tensor& gradient : gradients) gradient = gradient.to(Placement::host());
  return gradients;
}

TEST(LayersOnRanks, GradientsThroughWhatHooksChangeHaveTheBitsOfOneProcesss) {
  const TinyModel tiny(kFiveLayers);
  const std::vector<Tensor> whole = term_gradients(load_whole(tiny));
  std::vector<Tensor> parts;
  with_layers_on_ranks(tiny, [&](const CausalLM& model, LayerPeers&) { parts = term_gradients(model); });
  ASSERT_EQ(parts.size(), whole.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_GT(whole[i].abs().max().item<double>(), 0) << i;
    EXPECT_TRUE(parts[i].equal(whole[i])) << i;
  }
}

TEST(LayersOnRanks, ARankHasItsOwnLayersAlone) {
  const TinyModel tiny(kFiveLayers);
  Placement placement = placement_over_ranks();
  placement.put_elsewhere_on(*placement.last_device_here());
  placement.leave_ends_out();
  const CausalLM part = CausalLM::load_part(tiny.checkpoint, tiny.config, placement, {}, nullptr);
  for (const WeightSpec& spec : weight_table(tiny.config)) {
    const bool is_own = role_of(spec.id.kind).place == WeightPlace::kLayer && spec.id.layer < 2;
    if (is_own)
      EXPECT_EQ(part.weight(spec.id).sizes(), at::IntArrayRef(spec.shape));
    else
      EXPECT_THROW(part.weight(spec.id), std::logic_error) << spec.name;
  }
}

TEST(LayersOnRanks, AFailureThereIsToldOnAllRanks) {
  const TinyModel tiny(kFiveLayers);
  try {
    with_layers_on_ranks(tiny, [&](const CausalLM& model, LayerPeers& peers) {
      EXPECT_THROW(peers.weight(1, {WeightKind::kDown, 4}, model.placement().head_device()), CollectiveError);
      throw ConfigError("rank 0 hears first that another failed");
    });
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_EQ(std::string(error.what()), "the model has no weight model.layers.4.mlp.down_proj.weight");
  }
}

}  // namespace
}  // namespace lancet
