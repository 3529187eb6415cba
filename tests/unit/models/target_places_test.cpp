#include "lancet/models/batching.h"

#include <gtest/gtest.h>

namespace lancet {
namespace {

using Numbers = std::vector<int64_t>;

TEST(TargetPlaces, AreThoseThatPredictTheTargetsAndTheOthersThatAreRead) {
  const std::vector<TokenId> two{7, 8}, one{9};
  const std::vector<RowTarget> rows{
      {.first_place = 3, .target = two, .also = 0}, {.first_place = 1, .target = one, .also = {}},
      {.first_place = 0, .target = two, .also = 0}, {.first_place = 0, .target = {}, .also = 0},
      {.first_place = 0, .target = {}, .also = 4},  {.first_place = 4, .target = one, .also = 2}};
  const TargetPlaces places = target_places(rows);
  EXPECT_EQ(places.outputs, (std::vector<Numbers>{{0, 3, 4}, {1}, {0, 1}, {0}, {4}, {2, 4}}));
  EXPECT_EQ(places.positions, (Numbers{1, 2, 3, 4, 5, 9}));
  EXPECT_EQ(places.ids, (Numbers{7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(places.rows, (Numbers{0, 0, 1, 2, 2, 5}));
  EXPECT_EQ(places.also, (Numbers{0, 4, 6, 7, 8})) << "the third row's own first output, and two rows' only ones";
}

}  // namespace
}  // namespace lancet
