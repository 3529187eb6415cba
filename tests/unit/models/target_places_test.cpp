#include "lancet/models/batching.h"

#include <gtest/gtest.h>

namespace lancet {
namespace {

using Numbers = std::vector<int64_t>;

TEST(TargetPlaces, AreThoseThatPredictTheTargetsAndTheBeginningsThatAreRead) {
  const std::vector<TokenId> two{7, 8}, one{9};
  const std::vector<RowTarget> rows{{.first_place = 3, .target = two, .reads_beginning = true},
                                    {.first_place = 1, .target = one, .reads_beginning = false},
                                    {.first_place = 0, .target = two, .reads_beginning = true},
                                    {.first_place = 0, .target = {}, .reads_beginning = true}};
  const TargetPlaces places = target_places(rows);
  EXPECT_EQ(places.outputs, (std::vector<Numbers>{{0, 3, 4}, {1}, {0, 1}, {0}}));
  EXPECT_EQ(places.positions, (Numbers{1, 2, 3, 4, 5}));
  EXPECT_EQ(places.ids, (Numbers{7, 8, 9, 7, 8}));
  EXPECT_EQ(places.rows, (Numbers{0, 0, 1, 2, 2}));
  EXPECT_EQ(places.beginnings, (Numbers{0, 4, 6})) << "the third row's own first output, and the last row's only one";
}

}  // namespace
}  // namespace lancet
