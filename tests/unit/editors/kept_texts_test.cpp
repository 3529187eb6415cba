#include "lancet/editor_parts/kept_texts.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"

namespace lancet {
namespace {

using Texts = std::vector<TokenizedRequest>;

TEST(KeptTexts, AreThoseOfAllBatches) {
  EditorState state;
  EXPECT_TRUE(kept_texts(state).empty());
  keep_texts(state,
             Texts{{.id = "a", .prompt = {1, 5, 6}, .target = {7}}, {.id = "b", .prompt = {1}, .target = {8, 9}}});
  keep_texts(state, Texts{{.id = "c", .prompt = {1, 2}, .target = {3, 4, 5}}});
  const Texts kept = kept_texts(state);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[0].prompt, (std::vector<TokenId>{1, 5, 6}));
  EXPECT_EQ(kept[0].target, std::vector<TokenId>{7});
  EXPECT_EQ(kept[1].prompt, std::vector<TokenId>{1});
  EXPECT_EQ(kept[1].target, (std::vector<TokenId>{8, 9}));
  EXPECT_EQ(kept[2].target, (std::vector<TokenId>{3, 4, 5}));
}

TEST(KeptTexts, OfAPromptAreTheNewest) {
  EditorState state;
  keep_texts(state, Texts{{.id = "a", .prompt = {1, 5}, .target = {7}}, {.id = "b", .prompt = {1, 6}, .target = {8}}});
  keep_texts(state, Texts{{.id = "c", .prompt = {1, 5}, .target = {9}}});
  const Texts kept = kept_texts(state);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].prompt, (std::vector<TokenId>{1, 6}));
  EXPECT_EQ(kept[1].target, std::vector<TokenId>{9});
  const Texts beside_new = kept_texts(state, Texts{{.id = "d", .prompt = {1, 6}, .target = {2}}});
  ASSERT_EQ(beside_new.size(), 1u);
  EXPECT_EQ(beside_new[0].prompt, (std::vector<TokenId>{1, 5}));
}

TEST(KeptTexts, MustFitTheirSizes) {
  EditorState state;
  keep_texts(state, Texts{{.id = "a", .prompt = {1, 5}, .target = {7}}});
  state.tensors["texts.sizes"].fill_(2);
  EXPECT_THROW(kept_texts(state), CheckpointError);
}

}  // namespace
}  // namespace lancet
