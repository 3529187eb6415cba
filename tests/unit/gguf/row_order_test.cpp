#include "lancet/gguf/row_order.h"

#include <gtest/gtest.h>

namespace lancet {
namespace {

using Rows = std::vector<int64_t>;

TEST(RowOrder, PutsQueriesKeysAndValuesOfAKeyHeadTogether) {
  // the file has q0 q1 q2 q3 k0 k1 v0 v1
  EXPECT_EQ(file_rows(GgufChange::kByKeyHead, 8, {4, 2}), Rows({0, 1, 4, 6, 2, 3, 5, 7}));
  EXPECT_EQ(file_rows(GgufChange::kByKeyHead, 6, {1, 1}), Rows({0, 1, 2, 3, 4, 5}));
}

TEST(RowOrder, PutsTheHalvesOfAHeadOneAfterTheOther) {
  EXPECT_EQ(file_rows(GgufChange::kHeadRows, 8, {2, 1}), Rows({0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(file_rows(GgufChange::kKvHeadRows, 4, {2, 1}), Rows({0, 2, 1, 3}));
}

TEST(RowOrder, LeavesOtherChangesInTheirOrder) {
  for (const GgufChange change : {GgufChange::kNone, GgufChange::kLessOne, GgufChange::kTransposed}) {
    EXPECT_FALSE(moves_rows(change));
    EXPECT_TRUE(file_rows(change, 4, {}).empty());
    EXPECT_TRUE(fits_rows(change, 3, {}));
  }
}

TEST(RowOrder, WantsRowsOfWholeHeads) {
  EXPECT_TRUE(fits_rows(GgufChange::kByKeyHead, 16, {4, 2}));
  EXPECT_FALSE(fits_rows(GgufChange::kByKeyHead, 12, {4, 2}));
  EXPECT_FALSE(fits_rows(GgufChange::kByKeyHead, 9, {3, 2}));
  EXPECT_FALSE(fits_rows(GgufChange::kByKeyHead, 8, {4, 0}));
  EXPECT_FALSE(fits_rows(GgufChange::kHeadRows, 6, {2, 1}));
  EXPECT_FALSE(fits_rows(GgufChange::kKvHeadRows, 6, {2, 0}));
}

}  // namespace
}  // namespace lancet
