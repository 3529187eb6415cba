// Rows without padding: packed documents, and ragged rows over keys and values that they share.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>

#include "lancet/models/batching.h"
#include "lancet/models/causal_lm.h"
#include "support/family_models.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::kExactF64;
using testing::kRows;
using testing::nmse;
using testing::TinyModel;

class EachFamilyPacked : public ::testing::TestWithParam<testing::FamilyModel> {};
INSTANTIATE_TEST_SUITE_P(CausalLM, EachFamilyPacked, ::testing::ValuesIn(testing::family_models()),
                         [](const auto& one) { return one.param.name; });

Tensor run_row(const CausalLM& model, const std::vector<TokenId>& row) {
  const TokenBatch batch = make_batch({&row, 1});
  return model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers())[0];
}

/// Packed, without copies of the documents.
TokenBatch packed(const std::vector<std::vector<TokenId>>& documents) {
  const std::vector<std::span<const TokenId>> spans(documents.begin(), documents.end());
  return make_packed_batch(spans);
}

/// Documents of the given lengths; one of `openings` ways to begin each.
std::vector<std::vector<TokenId>> documents_of(const std::vector<int64_t>& lengths, int64_t openings) {
  std::vector<std::vector<TokenId>> documents;
  TokenId next = 7;
  for (const int64_t length : lengths) {
    const TokenId opening = static_cast<TokenId>(documents.size()) % openings;
    std::vector<TokenId> ids{1 + opening, 100 + opening, 3000};
    while (static_cast<int64_t>(ids.size()) < length) ids.push_back(next = (next * 31 + 11) % 4096);
    ids.resize(static_cast<size_t>(length));
    documents.push_back(std::move(ids));
  }
  return documents;
}

/// Each document's hidden states at the last layer, packed against alone.
void expect_as_if_alone(const CausalLM& model, const std::vector<std::vector<TokenId>>& documents, double most_nmse) {
  const TokenBatch batch = packed(documents);
  const SequenceInfo& sequence = batch.sequence;
  Tensor together = model.run_layers(model.embed(batch.ids_BT, batch.sequence), sequence, model.all_layers())[0];
  if (sequence.places_P.defined()) together = together.index_select(0, sequence.places_P);
  int64_t begin = 0;
  for (const std::vector<TokenId>& document : documents) {
    const int64_t end = begin + static_cast<int64_t>(document.size());
    EXPECT_LE(nmse(together.slice(0, begin, end), run_row(model, document)), most_nmse) << "place " << begin;
    begin = end;
  }
  EXPECT_EQ(begin, together.size(0));
}

// by length: several in a row of attention's batch, with a rest and without; one; too long for that; equal ones apart
const std::vector<int64_t> kPackedLengths{3, 3, 3, 3, 3, 3, 3, 1, 5, 5, 5, 5, 40, 40, 90, 90, 3, 90};

TEST_P(EachFamilyPacked, RunsPackedDocumentsAsIfAlone) {
  const TinyModel tiny(GetParam().config, 1);
  const auto documents = documents_of(kPackedLengths, /*openings=*/1000);
  EXPECT_EQ(packed(documents).sequence.packed.size(), 7u);
  EXPECT_FALSE(packed(documents).sequence.places_P.defined()) << "these documents begin differently";
  expect_as_if_alone(tiny.load(), documents, kExactF64);
  // bf16's rounding sends some tokens to other experts, and grows in state spaces without a norm
  const bool has_experts = tiny.config.experts.count > 0;
  expect_as_if_alone(tiny.load(has_experts ? torch::kFloat : torch::kBFloat16), documents, has_experts ? 1e-9 : 5e-3);
}

TEST(PackedRows, RunsWhatPackedDocumentsShareOnce) {
  const TinyModel tiny;
  const auto documents = documents_of(kPackedLengths, /*openings=*/2);
  std::set<std::vector<TokenId>> prefixes;
  int64_t places = 0;
  for (const auto& document : documents) {
    for (size_t length = 1; length <= document.size(); ++length)
      prefixes.emplace(document.begin(), document.begin() + static_cast<int64_t>(length));
    places += static_cast<int64_t>(document.size());
  }
  const TokenBatch batch = packed(documents);
  EXPECT_EQ(batch.ids_BT.size(1), static_cast<int64_t>(prefixes.size()));
  EXPECT_LT(batch.ids_BT.size(1), places);
  EXPECT_EQ(token_counts(batch.sequence).sum().item<int64_t>(), places);
  expect_as_if_alone(tiny.load(), documents, kExactF64);
}

TEST_P(EachFamilyPacked, ComputesOnlyTheTokensOfPackedDocumentsThatAreAskedFor) {
  const TinyModel tiny(GetParam().config, 1);
  for (const at::ScalarType dtype : {torch::kDouble, torch::kBFloat16}) {
    const CausalLM model = tiny.load(dtype);
    for (const int64_t openings : {1000, 2}) {
      TokenBatch batch = packed(documents_of(kPackedLengths, openings));
      const Tensor whole =
          model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers())[0];
      const int64_t tokens = batch.ids_BT.size(1);
      // in no order, one twice, runs with none and with several in a document
      const Tensor some = torch::tensor({tokens - 1, int64_t{40}, int64_t{0}, tokens - 2, int64_t{41}, int64_t{40}});
      batch.sequence.outputs_BO = some.unsqueeze(0);
      const Tensor h_1OD =
          model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
      ASSERT_EQ(h_1OD.size(1), some.size(0));
      EXPECT_LE(nmse(h_1OD[0], whole.index_select(0, some)), dtype == torch::kDouble ? kExactF64 : 1e-4) << openings;
    }
  }
}

/// Rows whose beginnings are recorded once for all, as packed documents: some alike, one that is nothing.
TEST_P(EachFamilyPacked, RunsRaggedRowsOverAPoolAsWholeRows) {
  const TinyModel tiny(GetParam().config, 1);
  const CausalLM model = tiny.load();
  const auto rows = documents_of({12, 4, 9, 9, 2}, /*openings=*/2);
  const std::vector<size_t> cuts{8, 3, 2, 8, 0};
  std::vector<std::span<const TokenId>> beginnings;
  RaggedLayout layout;
  std::vector<TokenId> own;
  std::vector<int64_t> positions, outputs;
  for (size_t row = 0; row < rows.size(); ++row) {
    if (cuts[row] > 0) beginnings.push_back(std::span(rows[row]).first(cuts[row]));
    layout.tokens.push_back(std::ssize(rows[row]) - static_cast<int64_t>(cuts[row]));
    for (size_t t = cuts[row]; t < rows[row].size(); ++t) {
      own.push_back(rows[row][t]);
      positions.push_back(static_cast<int64_t>(t));
    }
    outputs.push_back(std::ssize(own) - 1);
  }
  TokenBatch before = make_packed_batch(beginnings);
  KeyValues pool;
  before.sequence.record = &pool;
  model.run_layers(model.embed(before.ids_BT, before.sequence), before.sequence, model.all_layers());
  int64_t place = 0;
  for (const size_t cut : cuts) {
    std::vector<int64_t>& earlier = layout.earlier.emplace_back();
    for (size_t t = 0; t < cut; ++t, ++place)
      earlier.push_back(before.sequence.places_P.const_data_ptr<int64_t>()[place]);
  }
  EXPECT_LT(pool.positions(), place) << "these rows begin alike";

  SequenceInfo sequence;
  sequence.positions_BT = torch::tensor(positions, torch::kLong).unsqueeze(0);
  sequence.lengths = {std::ssize(own)};
  sequence.ragged = &layout;
  sequence.prefix = &pool;
  const Tensor ids_1N = torch::tensor(std::vector<int64_t>(own.begin(), own.end()), torch::kLong).unsqueeze(0);
  const auto run = [&] { return model.run_layers(model.embed(ids_1N, sequence), sequence, model.all_layers())[0]; };
  const Tensor all_ND = run();
  int64_t begin = 0;
  for (size_t row = 0; row < rows.size(); begin += layout.tokens[row++])
    EXPECT_LE(nmse(all_ND.narrow(0, begin, layout.tokens[row]),
                   run_row(model, rows[row]).slice(0, static_cast<int64_t>(cuts[row]))),
              kExactF64)
        << "row " << row;
  sequence.outputs_BO = torch::tensor(outputs, torch::kLong).unsqueeze(0);
  EXPECT_LE(nmse(run(), all_ND.index_select(0, sequence.outputs_BO[0])), kExactF64);
}

TEST(PackedRows, RefusesPackedDocumentsWithAPrefixOrOfOtherLengths) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  TokenBatch batch = packed(kRows);
  const Tensor h_BTD = model.embed(batch.ids_BT, batch.sequence);
  KeyValues cache;
  batch.sequence.prefix = &cache;
  EXPECT_THROW(model.run_layers(h_BTD, batch.sequence, model.all_layers()), std::logic_error);
  batch.sequence.prefix = nullptr;
  batch.sequence.packed.pop_back();
  EXPECT_THROW(model.run_layers(h_BTD, batch.sequence, model.all_layers()), std::logic_error);
}

TEST(PlanBatches, KeepsEveryRowOnceWithinTheBudget) {
  const std::vector<int64_t> lengths{9, 1, 30, 4, 4, 7, 2, 100, 3};
  std::vector<int64_t> seen;
  for (const auto& batch : plan_batches(lengths, {.tokens = 20})) {
    int64_t widest = 0;
    for (const int64_t row : batch) widest = std::max(widest, lengths[static_cast<size_t>(row)]);
    EXPECT_TRUE(batch.size() == 1 || widest * static_cast<int64_t>(batch.size()) <= 20);
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(PlanBatches, CutsByRowsInTheOrderOfLengths) {
  EXPECT_EQ(plan_batches(std::vector<int64_t>{9, 1, 30, 4, 4}, {.rows = 2}),
            (std::vector<std::vector<int64_t>>{{1, 3}, {4, 0}, {2}}));
}

TEST(PlanPacks, FillsRowsWithDocumentsThatBeginAlike) {
  const auto documents = documents_of({9, 1, 30, 4, 4, 7, 2, 100, 3, 9, 9, 9, 4, 4, 30, 2, 12, 18, 1, 5}, 3);
  constexpr int64_t kTokens = 40;
  const auto places_of = [&](const std::vector<int64_t>& pack) {
    int64_t places = 0;
    for (const int64_t index : pack) places += static_cast<int64_t>(documents[static_cast<size_t>(index)].size());
    return places;
  };
  std::vector<int64_t> seen;
  int64_t tokens = 0;
  const auto packs = plan_packs(documents, kTokens);
  for (const auto& pack : packs) {
    std::vector<std::vector<TokenId>> members;
    for (const int64_t index : pack) members.push_back(documents[static_cast<size_t>(index)]);
    const TokenBatch batch = packed(members);
    EXPECT_TRUE(pack.size() == 1 || (batch.ids_BT.size(1) <= kTokens && places_of(pack) <= 2 * kTokens));
    EXPECT_TRUE(std::is_sorted(members.begin(), members.end(),
                               [](const auto& a, const auto& b) { return a.size() < b.size(); }));
    tokens += batch.ids_BT.size(1);
    seen.insert(seen.end(), pack.begin(), pack.end());
  }
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> all(documents.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  EXPECT_EQ(seen, all);
  EXPECT_LT(tokens, places_of(all)) << "nothing was shared";
}

TEST(PlanPacks, KeepsLongDocumentsApart) {
  const auto documents = documents_of({9, 1, 30, 4, 12, 11, 30, 2, 9}, 3);
  std::vector<std::pair<bool, size_t>> packs;  // whether long, documents
  for (const auto& pack : plan_packs(documents, 1000, 10)) {
    const auto is_long = [&](int64_t index) { return documents[static_cast<size_t>(index)].size() > 10; };
    EXPECT_TRUE(std::ranges::all_of(pack, is_long) || std::ranges::none_of(pack, is_long));
    packs.emplace_back(is_long(pack.front()), pack.size());
  }
  EXPECT_EQ(packs, (std::vector<std::pair<bool, size_t>>{{false, 5}, {true, 4}}));
}

}  // namespace
}  // namespace lancet
