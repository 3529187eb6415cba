#include "lancet/statistics/entity_moments.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/statistics/statistics_store.h"
#include "support/edit_setup.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::plain_moment;
using testing::TinyModel;

// Packed documents share their beginnings: an end can be inside another document, and one row the end of several.
TEST(EntityMoments, CountOnlyTheLastTokenOfEachDocument) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const std::vector<int64_t> layers{0, 2};
  const CorpusTokens sharing{{{1, 5, 9}, {1, 5, 9, 12, 40}, {1, 5}, {1, 5, 9}, {30, 31, 5, 9}}, 17, true, true};
  const CorpusTokens apart{{{1, 5, 9}, {2, 5, 9, 12}, {3, 5}}, 9, true, true};
  for (const CorpusTokens& corpus : {sharing, apart}) {
    const std::vector<Covariance> ends = collect_covariances(model, corpus, layers, alone());
    for (size_t i = 0; i < layers.size(); ++i) {
      EXPECT_EQ(ends[i].tokens, std::ssize(corpus.documents));
      EXPECT_LE(nmse(ends[i].moment_FF, plain_moment(model, corpus, layers[i])), 1e-26);
    }
  }
}

TEST(EntityMoments, OfEndsAndOfAllTokensHaveOtherKeys) {
  const CorpusTokens all{{{1, 5, 9}}, 3, true};
  CorpusTokens ends = all;
  ends.only_ends = true;
  EXPECT_NE(text_of(all).content_key, text_of(ends).content_key);
}

TEST(EntityMoments, HaveADocumentForANameAloneInWordsAndInAMessage) {
  const TinyModel tiny;
  const CorpusTokens plain = entity_documents(*tiny.tokenizer, "");
  const CorpusTokens chat = entity_documents(*tiny.tokenizer, "user: {}\nassistant:");
  const auto n_names = static_cast<size_t>(std::ssize(entity_names()));
  EXPECT_TRUE(plain.only_ends);
  EXPECT_EQ(plain.documents.size(), 2 * n_names);  // the tiny tokenizer makes several tokens of every name
  EXPECT_EQ(chat.documents.size(), 3 * n_names);
  const std::string name(entity_names().front());
  EXPECT_EQ(plain.documents[0], tiny.tokenizer->ids(name));
  EXPECT_EQ(plain.documents[1], tiny.tokenizer->ids("Tell me about " + name));
  EXPECT_EQ(chat.documents[2], tiny.tokenizer->ids("user: Tell me about " + name));
}

/// Moments that are given.
class GivenMoments final : public MomentSource {
 public:
  GivenMoments(Tensor moment, std::string key) : moment_(std::move(moment)), key_(std::move(key)) {}
  std::string content_key(int64_t) const override { return key_; }
  void prepare(std::span<const int64_t>, Communicator&) override {}
  Covariance load(int64_t) const override { return {moment_.clone(), 10}; }
  bool from_cache(int64_t) const override { return true; }

 private:
  Tensor moment_;
  std::string key_;
};

std::shared_ptr<MomentSource> given(Tensor moment, std::string key) {
  return std::make_shared<GivenMoments>(std::move(moment), std::move(key));
}

TEST(MixedMoments, WeighEntitiesByTheTracesOfEachBlock) {
  const Tensor text = torch::tensor({{2.0, 1.0}, {1.0, 4.0}}, torch::kDouble);
  const Tensor names = torch::tensor({{1.0, 0.5}, {0.5, 2.0}}, torch::kDouble);
  const MixedMoments mixed(given(text, "a"), given(names, "b"), 0.5);
  EXPECT_LE(nmse(mixed.load(0).moment_FF, text + 0.5 * 6.0 / 3.0 * names), 1e-30);
  EXPECT_EQ(mixed.load(0).tokens, 10);

  // the second expert sees no name
  const MixedMoments experts(given(torch::stack({text, 3 * text}), "a"),
                             given(torch::stack({names, torch::zeros_like(names)}), "b"), 0.5);
  EXPECT_LE(nmse(experts.load(0).moment_FF, torch::stack({text + names, 3 * text})), 1e-30);
}

TEST(MixedMoments, HaveAKeyOfBothAndOfTheWeight) {
  const std::string key = MixedMoments::content_key("a", "b", 1);
  EXPECT_NE(key, MixedMoments::content_key("c", "b", 1));
  EXPECT_NE(key, MixedMoments::content_key("a", "c", 1));
  EXPECT_NE(key, MixedMoments::content_key("a", "b", 0.5));
}

}  // namespace
}  // namespace lancet
