#include "lancet/training/value_memory.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>

#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

/// Requests of a few dozen tokens each, dealt out on the host by so many threads.
struct HostPlan : public ::testing::Test {
  void TearDown() override { at::set_num_threads(before_); }

  RowBatches plan(int threads) {
    at::set_num_threads(threads);
    return plan_value_batches(model, requests, 1, {}, alone());
  }

  /// Tokens from the lookup tokens on. The drift row is one more where no context begins as it does.
  int64_t tokens_of(const std::vector<int64_t>& batch) const {
    int64_t tokens = 0;
    for (const int64_t i : batch) {
      const PreparedRequest& request = requests[static_cast<size_t>(i)];
      bool has_drift = false;
      for (const LocatedPrompt& row : request.rows) {
        tokens += static_cast<int64_t>(row.ids.size()) - row.lookup;
        const auto end = static_cast<size_t>(row.lookup) + 1;
        has_drift |= row.lookup == request.drift.lookup &&
                     std::ranges::equal(std::span(row.ids).first(end), std::span(request.drift.ids).first(end));
      }
      if (!has_drift) ++tokens;
    }
    return tokens;
  }

  void expect_whole(const RowBatches& batches, int64_t most_tokens) const {
    std::set<int64_t> all;
    for (const std::vector<int64_t>& batch : batches) {
      all.insert(batch.begin(), batch.end());
      EXPECT_LE(tokens_of(batch), most_tokens);
    }
    EXPECT_EQ(all.size(), requests.size());
  }

  testing::TinyModel tiny;
  CausalLM model = tiny.load(at::kFloat);
  std::vector<PreparedRequest> requests =
      prepare_requests(*tiny.tokenizer, testing::some_requests(260), testing::kContexts);

 private:
  int before_ = at::get_num_threads();
};

TEST_F(HostPlan, BatchesAreAsLargeAsCachesHoldWhereEveryThreadHasOne) {
  int64_t tokens = 0;
  const RowBatches alone = plan(1), many = plan(64);
  for (const std::vector<int64_t>& batch : alone) tokens += tokens_of(batch);
  ASSERT_GT(tokens, 2048);
  expect_whole(alone, 1024 + 30);  // dealt out evenly, to a request
  EXPECT_EQ(std::ssize(alone), (tokens + 1023) / 1024);
  expect_whole(many, 512 + 30);
  EXPECT_EQ(std::ssize(many), (tokens + 511) / 512) << "smaller ones would keep no thread busier";
}

TEST_F(HostPlan, ThreadsHaveEquallyManyBatches) {
  for (const int threads : {2, 3, 5}) {
    const RowBatches batches = plan(threads);
    EXPECT_EQ(std::ssize(batches) % threads, 0);
    expect_whole(batches, 1024 + 30);
  }
}

}  // namespace
}  // namespace lancet
