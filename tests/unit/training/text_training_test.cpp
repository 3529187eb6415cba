#include "lancet/training/text_training.h"
#include "lancet/core/drawn_order.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <algorithm>
#include <set>

#include "lancet/core/error.h"
#include "lancet/training/adam.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;

struct TextTraining : public ::testing::Test {
  testing::TinyModel tiny;
  CausalLM model = tiny.load();
  std::vector<TokenizedRequest> requests = tokenize_requests(*tiny.tokenizer, testing::some_requests(4));
  std::vector<WeightId> weights{{WeightKind::kGate, 1}, {WeightKind::kUp, 1}, {WeightKind::kDown, 2}};

  /// Mean NLL of one request's target tokens, from a pass of its own.
  Tensor plain_loss(const TokenizedRequest& request) const {
    std::vector<TokenId> ids = request.prompt;
    ids.insert(ids.end(), request.target.begin(), request.target.end());
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{ids});
    const Tensor log_probs = torch::log_softmax(model.logits(model.run_layers(model.embed(batch.ids_BT, batch.sequence),
                                                                              batch.sequence, model.all_layers())[0]),
                                                1);
    Tensor sum = torch::zeros({}, torch::kDouble);
    for (size_t j = 0; j < request.target.size(); ++j)
      sum = sum - log_probs[static_cast<int64_t>(request.prompt.size() + j) - 1][request.target[j]];
    return sum / static_cast<double>(request.target.size());
  }
};

/// X^T G over all tokens is the weight's gradient: what autograd makes of the weight as a leaf.
TEST_F(TextTraining, TokenGradientsMakeUpTheWeightsGradients) {
  const CapturedGradients captured = capture_token_gradients(model, requests, weights, {TokenChoice::kAll}, alone());
  std::vector<Tensor> leaves;
  for (const WeightId& id : weights) {
    leaves.push_back(model.weight(id).clone().requires_grad_(true));
    model.set_weight(id, leaves.back());
  }
  Tensor loss = torch::zeros({}, torch::kDouble);
  double n_targets = 0;
  for (const TokenizedRequest& request : requests) {
    loss = loss + plain_loss(request) * static_cast<double>(request.target.size());
    n_targets += static_cast<double>(request.target.size());
  }
  const std::vector<Tensor> expected = torch::autograd::grad({loss / n_targets}, leaves);
  for (size_t i = 0; i < weights.size(); ++i) {
    const TokenGradients& tokens = captured.weights[i];
    EXPECT_LE(nmse(tokens.gradients_MO.t().matmul(tokens.inputs_MI), expected[i]), 1e-24);
  }
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_NEAR(captured.losses[i], plain_loss(requests[i]).item<double>(), 1e-12);
}

TEST_F(TextTraining, AnswerTokensAreThoseThatPredictATarget) {
  const CapturedGradients all = capture_token_gradients(model, requests, weights, {TokenChoice::kAll}, alone());
  const CapturedGradients answer = capture_token_gradients(model, requests, weights, {TokenChoice::kAnswer}, alone());
  std::vector<int64_t> rows;
  int64_t row = 0;
  for (const TokenizedRequest& request : requests) {
    const auto prompt = static_cast<int64_t>(request.prompt.size()),
               target = static_cast<int64_t>(request.target.size());
    for (int64_t j = 0; j < target; ++j) rows.push_back(row + prompt - 1 + j);
    row += prompt + target - 1;
  }
  ASSERT_EQ(static_cast<int64_t>(all.owners.size()), row);
  ASSERT_EQ(answer.owners.size(), rows.size());
  const Tensor index = torch::tensor(rows, torch::kLong);
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LE(nmse(answer.weights[i].inputs_MI, all.weights[i].inputs_MI.index_select(0, index)), 1e-24);
    EXPECT_LE(nmse(answer.weights[i].gradients_MO, all.weights[i].gradients_MO.index_select(0, index)), 1e-24);
  }
}

TEST_F(TextTraining, LowersTheLossByWhatItReturns) {
  const Tensor before = model.weight(weights[0]).clone();
  const TrainedWeights trained = train_weights(model, requests, weights, {.steps = 8, .lr = 3e-3, .batch = 2}, alone());
  EXPECT_TRUE(model.weight(weights[0]).equal(before));
  EXPECT_FALSE(model.weight(weights[0]).requires_grad());
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_NEAR(trained.initial_losses[i], plain_loss(requests[i]).item<double>(), i < 2 ? 1e-12 : 1.0);
  for (size_t i = 0; i < weights.size(); ++i)
    model.set_weight(weights[i], model.weight(weights[i]) + trained.deltas_OI[i]);
  for (size_t i = 0; i < requests.size(); ++i)
    EXPECT_LT(plain_loss(requests[i]).item<double>(), trained.initial_losses[i]);
}

TEST_F(TextTraining, StaysWithinTheNormConstraint) {
  TrainingOptions options{.steps = 5, .lr = 1e-2, .norm_constraint = 2e-3};
  for (const Tensor& delta : train_weights(model, requests, weights, options, alone()).deltas_OI)
    EXPECT_EQ(delta.abs().max().item<double>(), 2e-3);
}

TEST_F(TextTraining, MakesNoUpdateBelowTheStopLoss) {
  const TrainedWeights trained = train_weights(model, requests, weights, {.steps = 5, .stop_loss = 100.0}, alone());
  EXPECT_EQ(trained.steps, 1);
  for (const Tensor& delta : trained.deltas_OI) EXPECT_EQ(delta.abs().max().item<double>(), 0.0);
}

/// A request of two target tokens that the model gives itself.
TokenizedRequest said_by(const CausalLM& model, TokenizedRequest request) {
  request.target.clear();
  for (int i = 0; i < 2; ++i) {
    std::vector<TokenId> ids = request.prompt;
    ids.insert(ids.end(), request.target.begin(), request.target.end());
    const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{ids});
    const Tensor last_TD =
        model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers())[0];
    request.target.push_back(static_cast<TokenId>(model.logits(last_TD)[-1].argmax().item<int64_t>()));
  }
  return request;
}

/// Adam's first step is of one size, whatever the gradient's: beside what is said, a request moves as alone.
TEST_F(TextTraining, LeavesOutWhatIsSaidByTheMargin) {
  const std::vector<TokenizedRequest> said{said_by(model, requests[0])}, unsaid{requests[1]};
  const std::vector<TokenizedRequest> both{said[0], unsaid[0]};
  const auto deltas = [&](std::span<const TokenizedRequest> texts, std::optional<double> margin) {
    return train_weights(model, texts, weights, {.steps = 1, .batch = 2, .stop_loss = 0, .margin = margin}, alone())
        .deltas_OI;
  };
  for (size_t i = 0; i < weights.size(); ++i) {
    const Tensor alone_OI = deltas(unsaid, {})[i];
    EXPECT_LE(nmse(deltas(both, 0)[i], alone_OI), 1e-6);
    EXPECT_GT(nmse(deltas(both, {})[i], alone_OI), 1e-2);
    EXPECT_TRUE(deltas(both, 1e9)[i].equal(deltas(both, {})[i]));
  }
  const TrainedWeights none = train_weights(model, said, weights, {.steps = 5, .stop_loss = 0, .margin = 0}, alone());
  EXPECT_EQ(none.steps, 1);
  EXPECT_EQ(none.deltas_OI[0].abs().max().item<double>(), 0.0);
}

/// Twice the gradient is the same step, which is scaled in turn.
TEST_F(TextTraining, ScalesSteps) {
  TrainingOptions options{.steps = 1, .batch = 4};
  const TrainedWeights plain = train_weights(model, requests, weights, options, alone());
  options.projected = Projected::kSteps;
  options.projection = [&](WeightId id) {
    return GradientProjection{.scale_II = 2 * torch::eye(model.weight(id).size(1), torch::kDouble)};
  };
  const TrainedWeights scaled = train_weights(model, requests, weights, options, alone());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_LE(nmse(scaled.deltas_OI[i], 2 * plain.deltas_OI[i]), 1e-6);
}

TEST(Adam, MovesAsTorchs) {
  const Tensor start = torch::linspace(-1, 1, 6, torch::kDouble);
  Tensor own = start.clone(), first = torch::zeros_like(own), second = torch::zeros_like(own);
  const Tensor other = start.clone().requires_grad_(true);
  torch::optim::Adam adam({other}, torch::optim::AdamOptions(0.1));
  for (int64_t number = 1; number <= 3; ++number) {
    own = own - adam_change(first, second, own.pow(3), {number, 0.1});
    other.mutable_grad() = other.detach().pow(3);
    adam.step();
    EXPECT_LE((own - other).abs().max().item<double>(), 1e-12);
  }
}

/// What the training ends with; empty: with weights.
std::string training_failure(const CausalLM& model, std::span<const TokenizedRequest> requests,
                             std::span<const WeightId> weights, double lr) {
  try {
    train_weights(model, requests, weights, {.steps = 3, .lr = lr}, alone());
  } catch (const NumericError& error) {
    return error.what();
  }
  return {};
}

TEST_F(TextTraining, RefusesALossThatIsNotFinite) {
  const std::string message = training_failure(model, requests, weights, 1e300);
  EXPECT_NE(message.find(" in training, after 1 update. Lower editor.lr: 1e+300"), std::string::npos) << message;
}

TEST_F(TextTraining, NamesTheDamagedWeightNotTheRate) {
  const WeightId id{WeightKind::kQuery, 3};
  Tensor damaged = model.weight(id).clone();
  damaged[0][0] = std::nan("");
  model.set_weight(id, damaged);
  std::string message = training_failure(model, requests, weights, 1e-3);
  try {
    capture_token_gradients(model, requests, weights, {}, alone());
  } catch (const NumericError& error) {
    message += error.what();
  }
  for (const char* part : {"in training: the model itself is damaged: model.layers.3.self_attn.q_proj.weight",
                           "the loss is nan: the model itself is damaged"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find("lr"), std::string::npos) << message;
}

TEST(DrawnOrder, IsAnotherPermutationInEachPassAndForEachSeed) {
  std::set<std::vector<int64_t>> orders;
  for (const auto& [pass, seed] : {std::pair{0, 0}, {1, 0}, {0, 1}}) {
    std::vector<int64_t> order = drawn_order(20, pass, static_cast<uint64_t>(seed));
    EXPECT_EQ(order, drawn_order(20, pass, static_cast<uint64_t>(seed)));
    orders.insert(order);
    std::sort(order.begin(), order.end());
    for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<int64_t>(i));
  }
  EXPECT_EQ(orders.size(), 3u);
}

/// One batch of all requests is the same one in any order; a pass's losses are each request's own.
TEST_F(TextTraining, OneBatchIsTheSameInAnyOrder) {
  TrainingOptions options{.steps = 3, .lr = 1e-3, .batch = 4, .stop_loss = 0};
  const TrainedWeights given = train_weights(model, requests, weights, options, alone());
  options.order = TrainingOrder::kBreadthFirst;
  const TrainedWeights drawn = train_weights(model, requests, weights, options, alone());
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_LE(nmse(drawn.deltas_OI[i], given.deltas_OI[i]), 1e-16);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_NEAR(drawn.initial_losses[i], plain_loss(requests[i]).item<double>(), 1e-12);
    EXPECT_NEAR(drawn.final_losses[i], given.final_losses[i], 1e-9);
  }
  options.batch = 3;
  EXPECT_GT(nmse(train_weights(model, requests, weights, options, alone()).deltas_OI[0], given.deltas_OI[0]), 1e-3);
}

}  // namespace
}  // namespace lancet
