// Values at the MLP's output, and at the attention's beside it: against whole passes with hooks.
#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/training/values.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TinyModel;

constexpr int64_t kLayer = 1;

struct ValueSitesTest : public ::testing::Test {
  TinyModel tiny;
  CausalLM model = tiny.load();
  std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(5), testing::kContexts);
  ValueOptions options{.steps = 6, .lr = 0.1, .weight_decay = 0.5, .clamp = 0.75, .kl = 0.25, .stop_loss = 0.05};

  /// log p after every token, `added` at the lookup token of the MLP's output.
  Tensor log_probs(const std::vector<TokenId>& ids, int64_t lookup, const Tensor& added) const {
    HookSet hooks;
    hooks.replace({HookPoint::kMlpOut, kLayer}, [&](const Tensor& out) {
      Tensor moved = out.clone();
      moved[0][lookup] += added;
      return moved;
    });
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{ids});
    return torch::log_softmax(model.logits(model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence,
                                                            model.all_layers(), hooks)[0]),
                              -1);
  }

  Tensor mlp_out(const LocatedPrompt& prompt) const {
    Tensor seen;
    HookSet watch;
    watch.observe({HookPoint::kMlpOut, kLayer}, [&](const Tensor& out) { seen = out[0][prompt.lookup]; });
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{prompt.ids});
    model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), watch);
    return seen;
  }

  double nll(const PreparedRequest& request, const Tensor& delta) const {
    double sum = 0;
    for (const LocatedPrompt& prompt : request.prompts) {
      std::vector<TokenId> ids = prompt.ids;
      ids.insert(ids.end(), request.target.begin(), request.target.end());
      const Tensor lp = log_probs(ids, prompt.lookup, delta);
      for (size_t j = 0; j < request.target.size(); ++j)
        sum -= lp[static_cast<int64_t>(prompt.ids.size() + j) - 1][request.target[j]].item<double>();
    }
    return sum / static_cast<double>(request.target.size() * request.prompts.size());
  }
};

TEST_F(ValueSitesTest, AtTheMlpTheNormsAreTheMlps) {
  options.site = ValueSite::kMlpOut;
  const OptimizedValues values = optimize_values(model, requests, kLayer, options, {alone()});
  for (size_t i = 0; i < requests.size(); ++i) {
    const Tensor initial = mlp_out(requests[i].prompts[0]);
    const Tensor delta = values.z_ND[static_cast<int64_t>(i)] - initial;
    const ValueLoss& last = values.losses[i].back();
    EXPECT_NEAR(values.initial_norms[i], initial.norm().item<double>(), 1e-12);
    EXPECT_LE(delta.norm().item<double>(), options.clamp * initial.norm().item<double>() * (1 + 1e-12));
    EXPECT_NEAR(last.nll, nll(requests[i], delta), 1e-10 * last.nll);
    EXPECT_NEAR(last.weight_decay,
                options.weight_decay * delta.norm().item<double>() / initial.square().sum().item<double>(), 1e-10);
  }
}

TEST_F(ValueSitesTest, TwoVectorsLowerTheLossAndDoNotDependOnTheBatch) {
  options.site = ValueSite::kMlpAndAttnOut;
  options.batch = 64;
  const OptimizedValues together = optimize_values(model, requests, kLayer, options, {alone()});
  options.batch = 2;
  EXPECT_LE(nmse(optimize_values(model, requests, kLayer, options, {alone()}).z_ND, together.z_ND), 1e-24);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_NEAR(together.initial_norms[i], mlp_out(requests[i].prompts[0]).norm().item<double>(), 1e-12);
    EXPECT_NEAR(together.losses[i].front().nll, nll(requests[i], torch::zeros({32}, torch::kDouble)), 1e-10);
    EXPECT_LT(together.losses[i].back().total, together.losses[i].front().total);
  }
}

TEST_F(ValueSitesTest, APredictedTargetEndsItsRequest) {
  const std::vector<std::string> plain{"{}"};
  requests = prepare_requests(*tiny.tokenizer, testing::some_requests(3), plain);
  // what the model says anyway: predicted from the beginning, where KL is 0
  const LocatedPrompt& prompt = requests[1].prompts[0];
  requests[1].target = {static_cast<TokenId>(
      log_probs(prompt.ids, prompt.lookup, torch::zeros({32}, torch::kDouble))[-1].argmax().item<int64_t>())};
  requests[1].rows[0].target = requests[1].target;
  options.site = ValueSite::kMlpAndAttnOut;
  options.nll_factor = 2.0;
  for (const auto& [stop, steps] : {std::pair<ValueStop, size_t>{ValueStop::kLoss, 6},
                                    {ValueStop::kLossOrPredicted, 1},
                                    {ValueStop::kPredicted, 2}}) {
    options.stop = stop;
    const OptimizedValues values = optimize_values(model, requests, kLayer, options, {alone()});
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_NEAR(values.losses[i].front().nll, 2.0 * nll(requests[i], torch::zeros({32}, torch::kDouble)), 1e-9);
      EXPECT_EQ(values.losses[i].size(), i == 1 ? steps : 6u);
    }
  }
}

}  // namespace
}  // namespace lancet
