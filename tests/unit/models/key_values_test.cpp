#include "lancet/models/sequence_info.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace lancet {
namespace {

constexpr int64_t kCachedRows = 5, kHeads = 2, kDim = 3;

KeyValuePair fresh(int64_t tokens, uint64_t seed) {
  torch::manual_seed(seed);
  return {torch::randn({kCachedRows, tokens, kHeads, kDim}), torch::randn({kCachedRows, tokens, kHeads, kDim})};
}

/// Passes of 4, 1 and 1 tokens over layers 0 and 2.
KeyValues filled(int64_t room) {
  KeyValues cache(room);
  uint64_t seed = 0;
  for (const int64_t tokens : {4, 1, 1}) {
    for (const int64_t layer : {0, 2}) cache.record(layer, fresh(tokens, ++seed));
    cache.end_pass(torch::ones({kCachedRows, tokens}, torch::kBool));
  }
  return cache;
}

Tensor expected_keys(int64_t layer) {
  std::vector<Tensor> parts;
  uint64_t seed = layer == 0 ? 1 : 2;
  for (const int64_t tokens : {4, 1, 1}) {
    parts.push_back(fresh(tokens, seed).key.transpose(1, 2));
    seed += 2;
  }
  return torch::cat(parts, 2);
}

TEST(KeyValues, HoldsWhatWasRecordedWithRoomAndWithout) {
  for (const int64_t room : {0, 5, 6, 9}) {
    const KeyValues cache = filled(room);
    EXPECT_EQ(cache.positions(), 6);
    EXPECT_EQ(cache.valid_BP().sizes(), at::IntArrayRef({kCachedRows, 6}));
    EXPECT_FALSE(cache.layer(1).key.defined());
    EXPECT_FALSE(cache.layer(7).key.defined());
    for (const int64_t layer : {0, 2}) EXPECT_TRUE(cache.layer(layer).key.equal(expected_keys(layer))) << room;
  }
}

TEST(KeyValues, GrowsInPlaceWithinItsRoom) {
  KeyValues cache(6);
  cache.record(0, fresh(4, 1));
  cache.end_pass(torch::ones({kCachedRows, 4}, torch::kBool));
  const void* keys = cache.layer(0).key.data_ptr();
  const void* valid = cache.valid_BP().data_ptr();
  for (int step = 0; step < 2; ++step) {
    cache.record(0, fresh(1, 2));
    cache.end_pass(torch::ones({kCachedRows, 1}, torch::kBool));
  }
  EXPECT_EQ(cache.layer(0).key.data_ptr(), keys);
  EXPECT_EQ(cache.valid_BP().data_ptr(), valid);
}

TEST(KeyValues, KeepsRowsInPlaceAndSelectsThemAsACopy) {
  KeyValues cache = filled(8);
  const KeyValues some = cache.select({3, 1});
  const void* keys = cache.layer(2).key.data_ptr();
  cache.keep({0, 4, 2});
  EXPECT_EQ(cache.layer(2).key.data_ptr(), keys);
  for (const int64_t layer : {0, 2}) {
    const Tensor all = expected_keys(layer);
    EXPECT_TRUE(cache.layer(layer).key.equal(all.index_select(0, torch::tensor({0, 4, 2}))));
    EXPECT_TRUE(some.layer(layer).key.equal(all.index_select(0, torch::tensor({3, 1}))));
  }
  EXPECT_EQ(cache.valid_BP().size(0), 3);
  EXPECT_EQ(some.valid_BP().size(0), 2);
}

}  // namespace
}  // namespace lancet
