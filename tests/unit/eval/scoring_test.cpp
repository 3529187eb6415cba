#include "lancet/eval/scoring.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <random>
#include <set>

#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::run_ranks;
using testing::TinyModel;

/// The oracle: one row by itself, every logit of it.
ContinuationScore score_alone(const CausalLM& model, const Continuation& continuation) {
  std::vector<TokenId> ids = continuation.prompt;
  ids.insert(ids.end(), continuation.target.begin(), continuation.target.end());
  const TokenBatch batch = make_batch(std::vector<std::vector<TokenId>>{ids});
  const Tensor h_BTD = model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
  const Tensor logits_TV = model.logits(h_BTD[0]).to(torch::kDouble);
  const Tensor log_p_TV = torch::log_softmax(logits_TV, 1);
  ContinuationScore score;
  for (size_t j = 0; j < continuation.target.size(); ++j) {
    const auto place = static_cast<int64_t>(continuation.prompt.size() + j) - 1;
    score.nll -=
        log_p_TV[place][continuation.target[j]].item<double>() / static_cast<double>(continuation.target.size());
    const double most = logits_TV[place].max().item<double>();
    TokenId likeliest = 0;
    while (logits_TV[place][likeliest].item<double>() < most) ++likeliest;
    score.argmax.push_back(likeliest);
  }
  return score;
}

/// `count` ids from `first` on.
std::vector<TokenId> ids_from(TokenId first, size_t count) {
  std::vector<TokenId> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<TokenId>((first + 37 * i * i) % 4096);
  return ids;
}

/// Prompts and targets of 1 to 40 tokens, several targets to a prompt, prompts that begin alike or continue one
/// another, a target that is another prompt's continuation, one-token prompts, equal pairs.
std::vector<Continuation> many_continuations() {
  std::vector<Continuation> all;
  for (const size_t length : {1, 2, 3, 7, 16, 17, 33, 40}) {
    for (const TokenId opening : {1, 2}) {
      std::vector<TokenId> prompt = ids_from(opening, length);
      all.push_back({prompt, {17}});
      all.push_back({prompt, {400}});
      all.push_back({prompt, {400, 8, 99}});
      all.push_back({prompt, {400, 8, 98}});
      prompt.push_back(400);
      all.push_back({prompt, {8}});
      all.push_back({prompt, {8, 99}});
    }
  }
  all.push_back({{1}, ids_from(3, 40)});
  all.push_back({{1, 3}, ids_from(3, 2)});
  all.push_back(all.front());
  all.push_back(all.back());
  all.push_back({{5, 6, 7}, {5, 6, 7}});
  return all;
}

void expect_near(const std::vector<ContinuationScore>& scores, const std::vector<ContinuationScore>& expected,
                 double most) {
  ASSERT_EQ(scores.size(), expected.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(scores[i].nll, expected[i].nll, most) << "continuation " << i;
    EXPECT_EQ(scores[i].argmax, expected[i].argmax) << "continuation " << i;
  }
}

std::vector<ContinuationScore> scores_alone(const CausalLM& model, const std::vector<Continuation>& continuations) {
  std::vector<ContinuationScore> scores;
  for (const Continuation& continuation : continuations) scores.push_back(score_alone(model, continuation));
  return scores;
}

TEST(Scoring, IsThatOfEachRowAlone) {
  const TinyModel tiny;
  const std::vector<Continuation> continuations = many_continuations();
  const CausalLM f64 = tiny.load();
  expect_near(score_continuations(f64, continuations, "test", alone()), scores_alone(f64, continuations), 1e-12);
  const CausalLM f32 = tiny.load(torch::kFloat);
  expect_near(score_continuations(f32, continuations, "test", alone()), scores_alone(f32, continuations), 1e-5);
}

TEST(Scoring, InHalfPrecisionIsAsNearToTheTruthAsEachRowAlone) {
  const TinyModel tiny;
  const std::vector<Continuation> continuations = many_continuations();
  const CausalLM model = tiny.load(torch::kBFloat16);
  const std::vector<ContinuationScore> scores = score_continuations(model, continuations, "test", alone());
  const std::vector<ContinuationScore> plain = scores_alone(model, continuations);
  const std::vector<ContinuationScore> exact = scores_alone(tiny.load(), continuations);
  double off = 0, plain_off = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    off += std::abs(scores[i].nll - exact[i].nll);
    plain_off += std::abs(plain[i].nll - exact[i].nll);
    EXPECT_NEAR(scores[i].nll, plain[i].nll, 0.3) << "continuation " << i;
  }
  EXPECT_GT(plain_off, 0);
  EXPECT_LE(off, 1.2 * plain_off);
}

TEST(Scoring, OfOneContinuationByItself) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  for (const Continuation& one : {Continuation{{1}, {17}}, Continuation{{1, 5, 9}, {3, 4}}})
    expect_near(score_continuations(model, std::vector{one}, "test", alone()), {score_alone(model, one)}, 1e-12);
}

TEST(Scoring, OfRandomContinuationsOverSeveralPacks) {
  const TinyModel tiny({.n_layers = 2});
  const CausalLM model = tiny.load();
  std::mt19937_64 random(7);
  const auto some_ids = [&](uint64_t most) {
    std::vector<TokenId> ids(1 + random() % most);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % 3);  // most begin alike
    return ids;
  };
  std::vector<Continuation> continuations;
  for (int i = 0; i < 300; ++i) continuations.push_back({some_ids(9), some_ids(4)});
  for (int i = 0; i < 60; ++i) continuations.push_back({ids_from(static_cast<TokenId>(i), 250), {1, 2}});
  const ScoringSize size = scoring_size(continuations);
  EXPECT_GT(size.tokens, size.pack_tokens) << "one pack";
  std::vector<ContinuationScore> expected = scores_alone(model, continuations);
  expect_near(score_continuations(model, continuations, "test", alone()), expected, 1e-12);
  run_ranks(3, [&](Communicator& communicator) {
    expect_near(score_continuations(model, continuations, "test", communicator), expected, 1e-12);
  });
}

TEST(Scoring, TakesTheSmallestOfEquallyLikelyIds) {
  const TinyModel tiny;
  CausalLM model = tiny.load(torch::kFloat);
  model.set_weight({WeightKind::kHead}, torch::zeros_like(model.weight({WeightKind::kHead})));
  const Continuation one{{1, 5}, {0, 7}};
  const std::vector<ContinuationScore> scores = score_continuations(model, std::vector{one}, "test", alone());
  EXPECT_EQ(scores[0].argmax, (std::vector<TokenId>{0, 0}));
}

TEST(Scoring, CountsWhatRunsOnce) {
  const std::vector<Continuation> continuations = many_continuations();
  std::set<std::vector<TokenId>> prefixes, read;
  size_t longest = 0;
  for (const auto& [prompt, target] : continuations) {
    std::vector<TokenId> document = prompt;
    document.insert(document.end(), target.begin(), target.end() - 1);
    for (size_t length = 1; length <= document.size(); ++length) {
      const std::vector<TokenId> prefix(document.begin(), document.begin() + static_cast<int64_t>(length));
      prefixes.insert(prefix);
      if (length >= prompt.size()) read.insert(prefix);
    }
    longest = std::max(longest, document.size());
  }
  const ScoringSize size = scoring_size(continuations);
  EXPECT_EQ(size.tokens, static_cast<int64_t>(prefixes.size()));
  EXPECT_EQ(size.pack_tokens, size.tokens);
  EXPECT_GT(size.pack_places, size.tokens);
  EXPECT_EQ(size.document_tokens, static_cast<int64_t>(longest));
  EXPECT_EQ(size.read_places, static_cast<int64_t>(read.size()));
  EXPECT_EQ(scoring_size({}).tokens, 0);
}

}  // namespace
}  // namespace lancet
