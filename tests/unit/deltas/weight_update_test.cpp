#include "lancet/deltas/weight_update.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <limits>
#include <set>

#include "lancet/core/error.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TinyModel;

const WeightId kDown{WeightKind::kDown, 1};

LowRankDelta random_delta(int64_t rank) {
  return {torch::randn({32, rank}, torch::kDouble), torch::randn({rank, 48}, torch::kDouble)};
}

TEST(WeightTransaction, RollsBackUnlessCommitted) {
  const TinyModel tiny;
  CausalLM model = tiny.load();
  const Tensor before = model.weight(kDown);
  const Tensor copy = before.clone();
  {
    WeightTransaction transaction(model);
    transaction.apply(kDown, random_delta(2));
    transaction.apply(kDown, random_delta(1));
    EXPECT_FALSE(model.weight(kDown).equal(copy));
  }
  EXPECT_TRUE(model.weight(kDown).is_same(before));
  EXPECT_TRUE(before.equal(copy));
}

TEST(WeightTransaction, KeepsCommittedChanges) {
  const TinyModel tiny;
  CausalLM model = tiny.load();
  const Tensor expected_base = model.weight(kDown).clone();
  const LowRankDelta delta = random_delta(3);
  {
    WeightTransaction transaction(model);
    transaction.apply(kDown, delta);
    transaction.commit();
  }
  EXPECT_LE(nmse(model.weight(kDown), expected_base + delta.left_OR.matmul(delta.right_RI)), 1e-28);
}

TEST(WeightTransaction, AddsSmallChangesToAPreciseMaster) {
  const TinyModel tiny;
  CausalLM model = tiny.load(at::kBFloat16);
  const Tensor base = model.weight(kDown).to(torch::kFloat);
  WeightTransaction transaction(model);
  // each change alone is lost in bf16, together they are not
  for (int i = 0; i < 64; ++i) transaction.apply(kDown, DenseDelta{base.to(torch::kDouble) * 1e-3});
  EXPECT_LE(nmse(model.weight(kDown), base * 1.064), 1e-5);
}

TEST(WeightTransaction, MeasuresOnWeightsRoundedAsStored) {
  const TinyModel tiny;
  CausalLM model = tiny.load(at::kFloat);
  const Tensor stored = model.weight(kDown).to(at::kBFloat16);
  WeightTransaction transaction(model, [&](WeightId) { return stored; });
  transaction.apply(kDown, random_delta(1));
  const Tensor exact = transaction.entries()[0].master.clone();
  const auto losses = transaction.round_as_written();
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_TRUE(model.weight(kDown).equal(exact.to(at::kBFloat16).to(at::kFloat)));
  EXPECT_TRUE(transaction.entries()[0].master.equal(exact));
  const double change = (exact - stored.to(at::kFloat)).norm().item<double>();
  EXPECT_NEAR(losses[0].delta_norm, change, 1e-6 * change);
  EXPECT_NEAR(losses[0].relative_loss, (model.weight(kDown) - exact).norm().item<double>() / change, 1e-9);
  EXPECT_GT(losses[0].relative_loss, 1e-4);
  transaction.put_exact();
  EXPECT_TRUE(model.weight(kDown).equal(exact));
}

TEST(WeightTransaction, NamesTheWeightsByAllTheirChanges) {
  const TinyModel tiny;
  std::set<std::string> keys;
  std::vector<std::string> last;
  for (const uint64_t second_seed : {2, 3, 2}) {
    CausalLM model = tiny.load();
    WeightTransaction transaction(model);
    keys.insert(transaction.changes_key());
    torch::manual_seed(1);
    transaction.apply(kDown, random_delta(2));
    keys.insert(transaction.changes_key());
    torch::manual_seed(second_seed);
    const LowRankDelta delta = random_delta(2);
    // in another layout: it is the numbers that count
    transaction.apply(kDown, LowRankDelta{delta.left_OR.t().contiguous().t(), delta.right_RI});
    last.push_back(transaction.changes_key());
    keys.insert(last.back());
    transaction.round_as_written();
    EXPECT_EQ(transaction.changes_key(), last.back());
  }
  EXPECT_EQ(last[0], last[2]);
  EXPECT_EQ(keys.size(), 4u);
}

TEST(WeightTransaction, ChangesTheStoredWeightNotItsNarrowCopy) {
  const TinyModel tiny;
  const Tensor stored = tiny.load(at::kFloat).weight(kDown);
  CausalLM model = tiny.load(at::kBFloat16);
  WeightTransaction transaction(model, [&](WeightId) { return stored; });
  const LowRankDelta delta = random_delta(1);
  transaction.apply(kDown, delta);
  transaction.round_as_written();
  const Tensor expected = stored + to_dense(delta).to(at::kFloat);
  EXPECT_TRUE(transaction.entries()[0].master.equal(expected));
  EXPECT_TRUE(model.weight(kDown).equal(expected.to(at::kBFloat16)));
}

TEST(WeightTransaction, RefusesNaNAndLeavesTheWeight) {
  const TinyModel tiny;
  CausalLM model = tiny.load();
  const Tensor before = model.weight(kDown);
  WeightTransaction transaction(model);
  Tensor full = torch::zeros({32, 48}, torch::kDouble);
  full[0][0] = std::nan("");
  EXPECT_THROW(transaction.apply(kDown, DenseDelta{full}), NumericError);
  EXPECT_THROW(transaction.apply(kDown, DenseDelta{torch::zeros({48, 32}, torch::kDouble)}), std::logic_error);
  EXPECT_TRUE(model.weight(kDown).is_same(before));
  EXPECT_TRUE(transaction.entries().empty());
}

std::string message_from(const std::function<void()>& work) {
  try {
    work();
  } catch (const NumericError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(WeightTransaction, RefusesAChangeWithoutANorm) {
  const TinyModel tiny;
  CausalLM model = tiny.load(at::kFloat);
  const Tensor before = model.weight(kDown);
  WeightTransaction transaction(model);
  const std::string message = message_from([&] { transaction.apply(kDown, DenseDelta{torch::full({32, 48}, 1e30F)}); });
  EXPECT_NE(message.find("layers.1.mlp.down_proj.weight: the computed change has the norm inf"), std::string::npos)
      << message;
  EXPECT_TRUE(model.weight(kDown).is_same(before));
}

TEST(WeightTransaction, RefusesWhatTheStoredTypeCannotHold) {
  const TinyModel tiny;
  CausalLM model = tiny.load(at::kFloat);
  const Tensor stored = model.weight(kDown).to(at::kHalf);
  WeightTransaction transaction(model, [&](WeightId) { return stored; });
  transaction.apply(kDown, DenseDelta{torch::full({32, 48}, 7e4F)});
  const std::string message = message_from([&] { transaction.round_as_written(); });
  for (const char* part :
       {"mlp.down_proj.weight: the edited weight, rounded to the type it is stored in, is not finite",
        "the largest F16 number is 65504"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(WeightTransaction, RefusesWhatTheRunsTypeCannotHold) {
  const TinyModel tiny;
  CausalLM model = tiny.load(at::kHalf);
  const Tensor before = model.weight(kDown).clone();
  {
    WeightTransaction transaction(model);
    EXPECT_NE(message_from([&] {
                transaction.apply(kDown, DenseDelta{torch::full({32, 48}, 7e4F)});
              }).find("as the run computes with it, is not finite"),
              std::string::npos);
  }
  EXPECT_TRUE(model.weight(kDown).equal(before));
}

TEST(WeightTransaction, TellsADamagedWeightFromALargeChange) {
  const TinyModel tiny;
  CausalLM model = tiny.load(at::kFloat);
  Tensor damaged = model.weight(kDown).clone();
  damaged[3][1] = std::numeric_limits<float>::infinity();
  model.set_weight(kDown, damaged);
  WeightTransaction transaction(model);
  EXPECT_NE(message_from([&] {
              transaction.apply(kDown, DenseDelta{torch::zeros({32, 48})});
            }).find("has NaN or infinity in the model's own files"),
            std::string::npos);
}

}  // namespace
}  // namespace lancet
