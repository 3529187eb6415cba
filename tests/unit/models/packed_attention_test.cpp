// The variable-length kernel's place in packed attention: what it is given, and when. The kernel itself runs on GPUs
// alone (tests/gpu); here plain torch computes what it is meant to.
#include "blocks/packed_attention.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "support/on_device.h"
#include "support/tiny_model.h"
#include "support/varlen_reference.h"

namespace lancet {
namespace {

constexpr int64_t kPackedHeads = 6, kPackedKvHeads = 2, kPackedDim = 8;
const AttentionRule kPackedRule{0.3};

struct Packing {
  TokenBatch batch;
  PackedDocuments documents;
  Tensor query_1THC;
  KeyValuePair fresh_1TKC;
};

/// Documents of all kinds of lengths, the beginnings of which are shared where there are few openings.
Packing packing(int64_t openings, at::ScalarType type) {
  std::vector<std::vector<TokenId>> documents;
  for (const int64_t length : {3, 3, 3, 1, 1, 17, 90, 90, 5, 2, 70, 3}) {
    const auto i = static_cast<TokenId>(documents.size());
    std::vector<TokenId>& document = documents.emplace_back();
    for (TokenId t = 0; t < length; ++t) document.push_back(t < 2 ? i % openings : 100 * i + t);
  }
  const std::vector<std::span<const TokenId>> spans(documents.begin(), documents.end());
  Packing made{make_packed_batch(spans), {}, {}, {}};
  made.documents = packed_documents(made.batch.sequence, Placement::host());
  const int64_t tokens = made.batch.ids_BT.size(1);
  made.query_1THC = testing::numbers({1, tokens, kPackedHeads, kPackedDim}, 1).to(type);
  made.fresh_1TKC = {testing::numbers({1, tokens, kPackedKvHeads, kPackedDim}, 2).to(type),
                     testing::numbers({1, tokens, kPackedKvHeads, kPackedDim}, 3).to(type)};
  return made;
}

/// Bounds as the GPU's packed_documents() makes them.
void add_bounds(PackedDocuments& packed) {
  std::vector<int64_t> lengths;
  for (const DocumentRun& run : packed.runs)
    for (int64_t i = 0; i < run.documents; ++i) lengths.push_back(run.tokens);
  packed.bounds = document_bounds(lengths, Placement::host());
}

TEST(PackedAttention, ByAKernelOfAnyLengthsIsTheLoopOverRuns) {
  for (const int64_t openings : {1000, 2}) {
    Packing made = packing(openings, at::kDouble);
    EXPECT_EQ(made.documents.places_P.defined(), openings == 2);
    EXPECT_FALSE(made.documents.bounds.bounds.defined()) << "nobody asks for them on the host";
    const Tensor looped = packed_attention(made.query_1THC, made.fresh_1TKC, made.documents, kPackedRule);
    add_bounds(made.documents);
    const Tensor once =
        packed_attention_by(testing::plain_varlen, made.query_1THC, made.fresh_1TKC, made.documents, kPackedRule.scale);
    EXPECT_EQ(once.sizes(), looped.sizes());
    EXPECT_LE(testing::nmse(once, looped), 1e-28) << openings;
  }
}

TEST(PackedAttention, TakesTheLoopOnTheHostAlsoWithBounds) {
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat, at::kDouble}) {
    Packing made = packing(2, type);
    const Tensor looped = packed_attention(made.query_1THC, made.fresh_1TKC, made.documents, kPackedRule);
    add_bounds(made.documents);
    EXPECT_TRUE(packed_attention(made.query_1THC, made.fresh_1TKC, made.documents, kPackedRule).equal(looped));
  }
}

TEST(DocumentBounds, AreSumsOfLengths) {
  const std::vector<int64_t> lengths{3, 1, 1, 90, 2};
  const DocumentBounds documents = document_bounds(lengths, Placement::host());
  EXPECT_TRUE(documents.bounds.equal(torch::tensor({0, 3, 4, 5, 95, 97}, torch::kInt)));
  EXPECT_EQ(documents.most_tokens, 90);
  EXPECT_THROW(document_bounds(std::vector<int64_t>{1, int64_t{1} << 31}, Placement::host()), std::logic_error);
}

/// What every GPU since Ampere runs.
VarlenCase good_case() {
  return {.type = at::kBFloat16,
          .capability = 90,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .most_tokens = 512,
          .every_query = true,
          .needs_gradients = false};
}

TEST(VarlenKernel, IsTakenWhereItIsRightAlone) {
  EXPECT_TRUE(fits_varlen_kernel(good_case()));
  struct Row {
    const char* why;
    void (*change)(VarlenCase&);
    bool fits;
  };
  const Row rows[] = {
      {"f16", [](VarlenCase& c) { c.type = at::kHalf; }, true},
      {"the oldest", [](VarlenCase& c) { c.capability = 80; }, true},
      {"wide heads", [](VarlenCase& c) { c.head_dim = 256; }, true},
      {"a head each", [](VarlenCase& c) { c.kv_heads = 32; }, true},
      {"f32", [](VarlenCase& c) { c.type = at::kFloat; }, false},
      {"f64", [](VarlenCase& c) { c.type = at::kDouble; }, false},
      {"Turing", [](VarlenCase& c) { c.capability = 75; }, false},
      {"no GPU, or a driver that does not say", [](VarlenCase& c) { c.capability = 0; }, false},
      {"too wide heads", [](VarlenCase& c) { c.head_dim = 264; }, false},
      {"odd heads", [](VarlenCase& c) { c.head_dim = 100; }, false},
      {"heads that are no groups", [](VarlenCase& c) { c.kv_heads = 5; }, false},
      {"some queries", [](VarlenCase& c) { c.every_query = false; }, false},
      {"gradients", [](VarlenCase& c) { c.needs_gradients = true; }, false},
      {"documents of one token", [](VarlenCase& c) { c.most_tokens = 1; }, false},
      {"a window", [](VarlenCase& c) { c.sees_all_before = false; }, false},
      {"bent scores", [](VarlenCase& c) { c.bends_scores = true; }, false},
      {"no bounds", [](VarlenCase& c) { c.most_tokens = 0; }, false},
  };
  for (const Row& row : rows) {
    VarlenCase changed = good_case();
    row.change(changed);
    EXPECT_EQ(fits_varlen_kernel(changed), row.fits) << row.why;
  }
}

TEST(VarlenKernel, KnowsItsCase) {
  const Tensor query = torch::ones({1, 5, kPackedHeads, kPackedDim}, at::kBFloat16),
               key = torch::ones({1, 5, kPackedKvHeads, kPackedDim});
  const DocumentBounds documents = document_bounds(std::vector<int64_t>{2, 3}, Placement::host());
  const VarlenCase found = varlen_case(query, key, key, documents);
  EXPECT_EQ(found.type, at::kBFloat16);
  EXPECT_EQ(found.capability, 0);
  EXPECT_EQ(found.heads, kPackedHeads);
  EXPECT_EQ(found.kv_heads, kPackedKvHeads);
  EXPECT_EQ(found.head_dim, kPackedDim);
  EXPECT_EQ(found.most_tokens, 3);
  EXPECT_FALSE(found.needs_gradients);
  const Tensor leaf = torch::ones_like(key).requires_grad_(true);
  EXPECT_TRUE(varlen_case(query, key, leaf, documents).needs_gradients);
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(varlen_case(query, key, leaf, documents).needs_gradients);
}

}  // namespace
}  // namespace lancet
