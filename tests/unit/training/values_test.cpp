#include "lancet/training/values.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lancet/core/error.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TinyModel;

constexpr int64_t kEditedLayer = 1;

/// The total loss [] of one request at a given delta over the contexts of its prompts, from whole passes and a hook:
/// slow and independent of the optimiser.
Tensor plain_loss_of(const CausalLM& model, const PreparedRequest& request, const Tensor& delta_D,
                     const Tensor& initial_D, const ValueOptions& options) {
  const auto log_probs = [&](const std::vector<TokenId>& ids, int64_t lookup, const Tensor& added) {
    HookSet hooks;
    hooks.replace({HookPoint::kBlockOut, kEditedLayer}, [&](const Tensor& h) {
      return h + torch::one_hot(torch::tensor(lookup), h.size(1)).to(h.scalar_type()).unsqueeze(1) * added;
    });
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{ids});
    return torch::log_softmax(model.logits(model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence,
                                                            model.all_layers(), hooks)[0]),
                              -1);
  };
  Tensor nll = torch::zeros({}, torch::kDouble);
  for (const LocatedPrompt& prompt : request.prompts) {
    std::vector<TokenId> ids = prompt.ids;
    ids.insert(ids.end(), request.target.begin(), request.target.end());
    const Tensor lp = log_probs(ids, prompt.lookup, delta_D);
    for (size_t j = 0; j < request.target.size(); ++j)
      nll = nll - lp[static_cast<int64_t>(prompt.ids.size() + j) - 1][request.target[j]] /
                      static_cast<double>(request.target.size() * request.prompts.size());
  }
  const auto divergence = [&](const LocatedPrompt& prompt, int64_t place) {
    const Tensor now = log_probs(prompt.ids, prompt.lookup, delta_D)[place];
    const Tensor before = log_probs(prompt.ids, prompt.lookup, torch::zeros_like(delta_D))[place];
    return (now.exp() * (now - before)).sum();
  };
  Tensor kl = options.kl * divergence(request.drift, request.drift.lookup);
  for (const LocatedPrompt& prompt : request.kept)
    kl = kl + options.kept_weight / static_cast<double>(request.kept.size()) *
                  divergence(prompt, std::ssize(prompt.ids) - 1);
  return nll + kl + options.weight_decay * delta_D.norm() / initial_D.norm().square();
}

double plain_loss(const CausalLM& model, const PreparedRequest& request, const Tensor& delta_D, const Tensor& initial_D,
                  const ValueOptions& options) {
  return plain_loss_of(model, request, delta_D, initial_D, options).item<double>();
}

/// Output of the edited layer at the plain prompt's lookup token [D].
Tensor initial_hidden(const CausalLM& model, const PreparedRequest& request) {
  const LocatedPrompt& plain = request.prompts[0];
  Tensor initial;
  HookSet watch;
  watch.observe({HookPoint::kBlockOut, kEditedLayer}, [&](const Tensor& h) { initial = h[0][plain.lookup]; });
  const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{plain.ids});
  model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers(), watch);
  return initial;
}

struct ValuesTest : public ::testing::Test {
  TinyModel tiny;
  CausalLM model = tiny.load();
  std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(5), testing::kContexts);
  ValueOptions options{.steps = 6, .lr = 0.1, .weight_decay = 0.5, .clamp = 0.75, .kl = 0.25, .stop_loss = 0.05};
};

TEST_F(ValuesTest, FinalLossEqualsWholePasses) {
  const OptimizedValues values = optimize_values(model, requests, kEditedLayer, options, {alone()});
  for (size_t i = 0; i < requests.size(); ++i) {
    // the last recorded loss is that of the delta after all updates
    const Tensor initial = initial_hidden(model, requests[i]);
    const Tensor delta = values.z_ND[static_cast<int64_t>(i)] - initial;
    const double expected = plain_loss(model, requests[i], delta, initial, options);
    EXPECT_NEAR(values.losses[i].back().total, expected, 1e-10 * expected);
    EXPECT_NEAR(values.losses[i].front().total,
                plain_loss(model, requests[i], torch::zeros_like(delta), initial, options), 1e-10);
    EXPECT_NEAR(values.delta_norms[i], delta.norm().item<double>(), 1e-12);
  }
}

TEST_F(ValuesTest, KeptPromptsCountAtTheirEnds) {
  TargetForm form;
  form.kept = {"{} was", "What of {}? It is", "{}", "The mother tongue of {} is"};
  requests = prepare_requests(*tiny.tokenizer, testing::some_requests(5), testing::kContexts, form);
  ASSERT_EQ(requests[0].kept.size(), 4u);
  ASSERT_EQ(requests[1].kept.size(), 3u) << "its edited prompt is left out";
  options.kept_weight = 0.7;
  options.steps = 12;
  options.stop_loss = 0;
  // a loss at which some requests stop before others, whose prompts stay
  std::vector<double> midway;
  for (const std::vector<ValueLoss>& losses : optimize_values(model, requests, kEditedLayer, options, {alone()}).losses)
    midway.push_back(losses[6].total);
  std::ranges::sort(midway);
  std::set<size_t> steps;
  for (const double stop : {0.0, midway[2]})
    for (const int64_t contexts : {0, 1}) {
      options.stop_loss = stop;
      options.contexts_per_step = contexts;
      const OptimizedValues values = optimize_values(model, requests, kEditedLayer, options, {alone()});
      for (size_t i = 0; i < requests.size(); ++i) {
        steps.insert(values.losses[i].size());
        PreparedRequest seen = requests[i];
        if (contexts == 1)
          seen.prompts = {requests[i].prompts[(values.losses[i].size() - 1) % testing::kContexts.size()]};
        const Tensor initial = initial_hidden(model, requests[i]);
        const Tensor delta = values.z_ND[static_cast<int64_t>(i)] - initial;
        const double expected = plain_loss(model, seen, delta, initial, options);
        EXPECT_NEAR(values.losses[i].back().total, expected, 1e-10 * expected) << stop << ", request " << i;
      }
    }
  EXPECT_GT(steps.size(), 1u);
}

TEST_F(ValuesTest, AStepOfSomeContextsSeesTheNextOnesInTurn) {
  requests = prepare_requests(*tiny.tokenizer, testing::some_requests(2),
                              std::vector<std::string>{"{}", "I know. {}", "So it is. {}"});
  options.stop_loss = 0;
  options.contexts_per_step = 2;  // the first and the third, then the second alone
  const OptimizedValues values = optimize_values(model, requests, kEditedLayer, options, {alone()});
  for (size_t i = 0; i < requests.size(); ++i) {
    const Tensor initial = initial_hidden(model, requests[i]);
    PreparedRequest even = requests[i], odd = requests[i];
    even.prompts = {requests[i].prompts[0], requests[i].prompts[2]};
    odd.prompts = {requests[i].prompts[1]};
    // Adam in plain arithmetic
    Tensor delta = torch::zeros_like(initial), first = delta.clone(), second = delta.clone();
    for (int64_t step = 1; step <= *options.steps; ++step) {
      const Tensor leaf = delta.detach().requires_grad_(true);
      const Tensor loss = plain_loss_of(model, step % 2 == 1 ? even : odd, leaf, initial, options);
      EXPECT_NEAR(values.losses[i][static_cast<size_t>(step) - 1].total, loss.item<double>(), 1e-9) << "step " << step;
      if (step == *options.steps) break;
      const Tensor gradient = torch::autograd::grad({loss}, {leaf})[0];
      first = 0.9 * first + 0.1 * gradient;
      second = 0.999 * second + 0.001 * gradient * gradient;
      delta = delta -
              options.lr * first / (1 - std::pow(0.9, step)) / ((second / (1 - std::pow(0.999, step))).sqrt() + 1e-8);
      const double limit = options.clamp * initial.norm().item<double>(), norm = delta.norm().item<double>();
      if (norm > limit) delta = delta * (limit / norm);
    }
    EXPECT_LE(nmse(values.z_ND[static_cast<int64_t>(i)], initial + delta), 1e-20);
  }
}

TEST_F(ValuesTest, AStepOfSomeContextsStopsByTheMeanOverAll) {
  options.contexts_per_step = 1;
  options.steps = 40;
  options.stop_loss = 1e9;
  for (const auto& losses : optimize_values(model, requests, kEditedLayer, options, {alone()}).losses)
    EXPECT_EQ(losses.size(), testing::kContexts.size());
}

/// How many steps a request takes by the words of AutomaticSteps, from its losses at more than it needs.
size_t automatic_steps(const std::vector<double>& losses) {
  for (size_t steps = 50; steps < 100; ++steps) {
    double before = losses[0], lately = losses[steps - 25];
    for (size_t step = 0; step < steps - 25; ++step) before = std::min(before, losses[step]);
    for (size_t step = steps - 25; step < steps; ++step) lately = std::min(lately, losses[step]);
    if (lately >= 0.99 * before) return steps;
  }
  return 100;
}

TEST_F(ValuesTest, AutomaticStepsGoOnWhileARequestsLossFalls) {
  options.stop_loss = 0;
  options.steps = 100;
  const OptimizedValues all = optimize_values(model, requests, kEditedLayer, options, {alone()});
  options.steps = {};
  const OptimizedValues values = optimize_values(model, requests, kEditedLayer, options, {alone()});
  std::set<size_t> taken;
  for (size_t i = 0; i < requests.size(); ++i) {
    std::vector<double> losses;
    for (const ValueLoss& loss : all.losses[i]) losses.push_back(loss.total);
    EXPECT_EQ(values.losses[i].size(), automatic_steps(losses));
    taken.insert(values.losses[i].size());
    // who leaves has what that many steps give
    ValueOptions counted = options;
    counted.steps = static_cast<int64_t>(values.losses[i].size());
    const OptimizedValues one =
        optimize_values(model, std::span(requests).subspan(i, 1), kEditedLayer, counted, {alone()});
    EXPECT_LE(nmse(values.z_ND[static_cast<int64_t>(i)], one.z_ND[0]), 1e-24);
  }
  EXPECT_GT(taken.size(), 1u) << "requests leave at steps of their own";
  options.stop_loss = 1e9;
  for (const auto& losses : optimize_values(model, requests, kEditedLayer, options, {alone()}).losses)
    EXPECT_EQ(losses.size(), 1u) << "a found value ends it";
}

TEST_F(ValuesTest, DoNotDependOnTheBatch) {
  options.steps = 12;
  for (const int64_t contexts : {0, 2}) {
    options.contexts_per_step = contexts;
    options.batch = 64;
    options.stop_loss = 0;
    std::vector<double> halfway;  // so that requests leave one after another
    for (const auto& losses : optimize_values(model, requests, kEditedLayer, options, {alone()}).losses)
      halfway.push_back((losses.at(5).total + losses.at(6).total) / 2);
    std::ranges::sort(halfway);
    options.stop_loss = halfway[halfway.size() - 2];
    const OptimizedValues together = optimize_values(model, requests, kEditedLayer, options, {alone()});
    std::set<size_t> ends;
    for (const auto& losses : together.losses) ends.insert(losses.size());
    EXPECT_GT(ends.size(), 2u);
    for (const int64_t batch : {1, 2}) {
      options.batch = batch;
      const OptimizedValues apart = optimize_values(model, requests, kEditedLayer, options, {alone()});
      EXPECT_LE(nmse(apart.z_ND, together.z_ND), 1e-24);
      for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(apart.losses[i].size(), together.losses[i].size());
    }
  }
}

TEST_F(ValuesTest, LowerTheLossAndStayWithinTheClamp) {
  options.steps = 15;
  const OptimizedValues values = optimize_values(model, requests, kEditedLayer, options, {alone()});
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_LT(values.losses[i].back().total, values.losses[i].front().total);
    EXPECT_LE(values.delta_norms[i], options.clamp * values.initial_norms[i] * (1 + 1e-12));
    EXPECT_GT(values.delta_norms[i], 0);
  }
}

TEST_F(ValuesTest, OneStepMeasuresAndChangesNothing) {
  options.steps = 1;
  const OptimizedValues values = optimize_values(model, requests, kEditedLayer, options, {alone()});
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(values.losses[i].size(), 1u);
    EXPECT_EQ(values.delta_norms[i], 0);
    EXPECT_NEAR(values.losses[i][0].kl, 0, 1e-12);
    EXPECT_EQ(values.losses[i][0].weight_decay, 0);
  }
}

TEST_F(ValuesTest, EachRequestStopsOnItsOwnLoss) {
  // between the lowest and highest first loss: some requests stop at once, the others go on
  options.stop_loss = 0;
  std::vector<double> first;
  for (const auto& losses : optimize_values(model, requests, kEditedLayer, options, {alone()}).losses)
    first.push_back(losses[0].total);
  options.stop_loss =
      (*std::min_element(first.begin(), first.end()) + *std::max_element(first.begin(), first.end())) / 2;
  const OptimizedValues values = optimize_values(model, requests, kEditedLayer, options, {alone()});
  for (size_t i = 0; i < requests.size(); ++i) {
    if (first[i] < options.stop_loss) {
      EXPECT_EQ(values.losses[i].size(), 1u);
      EXPECT_EQ(values.delta_norms[i], 0);
    } else {
      EXPECT_GT(values.losses[i].size(), 1u);
    }
    for (size_t step = 0; step + 1 < values.losses[i].size(); ++step)
      EXPECT_GE(values.losses[i][step].total, options.stop_loss);
  }
}

/// What the optimisation ends with; empty: with values.
std::string values_failure(const CausalLM& model, std::span<const PreparedRequest> requests,
                           const ValueOptions& options) {
  try {
    optimize_values(model, requests, kEditedLayer, options, {alone()});
  } catch (const NumericError& error) {
    return error.what();
  }
  return {};
}

TEST_F(ValuesTest, RefuseAStepThatIsInfinite) {
  options.lr = 1e30;  // the projection onto the clamp would make a value of it that never moved
  const std::string message = values_failure(tiny.load(at::kFloat), requests, options);
  EXPECT_NE(message.find("the value's change has the norm inf in value optimisation, at editor.values.lr: 1e+30"),
            std::string::npos)
      << message;
  EXPECT_EQ(message.find("request "), 0u) << message;
}

TEST_F(ValuesTest, NameTheDamagedWeightNotTheRate) {
  const WeightId id{WeightKind::kGate, 2};
  Tensor damaged = model.weight(id).clone();
  damaged[1][1] = std::nan("");
  model.set_weight(id, damaged);
  const std::string message = values_failure(model, requests, options);
  EXPECT_NE(message.find("the model itself is damaged: model.layers.2.mlp.gate_proj.weight with NaN or infinity"),
            std::string::npos)
      << message;
  EXPECT_EQ(message.find("lr"), std::string::npos) << message;
}

TEST_F(ValuesTest, LeaveTheModelAsItWas) {
  const Tensor before = model.weight({WeightKind::kDown, kEditedLayer}).clone();
  optimize_values(model, requests, kEditedLayer, options, {alone()});
  EXPECT_TRUE(model.weight({WeightKind::kDown, kEditedLayer}).equal(before));
  EXPECT_FALSE(model.weight({WeightKind::kDown, kEditedLayer}).requires_grad());
}

}  // namespace
}  // namespace lancet
