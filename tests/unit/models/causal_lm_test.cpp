#include "lancet/models/causal_lm.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "lancet/core/error.h"
#include "lancet/models/batching.h"
#include "lancet/models/generate.h"
#include "support/family_models.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using Json = nlohmann::json;
using testing::kExactF64;
using testing::kRows;
using testing::nmse;
using testing::TinyModel;

class EachFamily : public ::testing::TestWithParam<testing::FamilyModel> {};
INSTANTIATE_TEST_SUITE_P(CausalLM, EachFamily, ::testing::ValuesIn(testing::family_models()),
                         [](const auto& one) { return one.param.name; });

Tensor run_rows(const CausalLM& model, const std::vector<std::vector<TokenId>>& rows) {
  const TokenBatch batch = make_batch(rows);
  return model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
}

TEST_P(EachFamily, PaddingDoesNotReachRealTokens) {
  const TinyModel tiny(GetParam().config, 1);
  const CausalLM model = tiny.load();
  const Tensor together = run_rows(model, kRows);
  for (size_t row = 0; row < kRows.size(); ++row) {
    const Tensor alone = run_rows(model, {kRows[row]})[0];
    EXPECT_LE(nmse(together[static_cast<int64_t>(row)].slice(0, 0, alone.size(0)), alone), kExactF64);
  }
}

TEST_P(EachFamily, RunsInPartsWithPrefixKeysAndValues) {
  const TinyModel tiny(GetParam().config, 1);
  const CausalLM model = tiny.load();
  const Tensor whole = run_rows(model, kRows);
  // the first two tokens of every row, recorded; then the rest against that prefix
  KeyValues cache;
  TokenBatch head = make_batch(std::vector<std::vector<TokenId>>{{1, 17}, {1, 5}, {1, 2000}});
  head.sequence.record = &cache;
  model.run_layers(model.embed(head.ids_BT, head.sequence), head.sequence, model.all_layers());
  TokenBatch tail = make_batch(std::vector<std::vector<TokenId>>{{400, 8, 99}, {9}, {3, 77, 3, 1000, 12}});
  tail.sequence.positions_BT = tail.sequence.positions_BT + 2;
  tail.sequence.prefix = &cache;
  const Tensor rest = model.run_layers(model.embed(tail.ids_BT, tail.sequence), tail.sequence, model.all_layers());
  EXPECT_LE(nmse(rest[0].slice(0, 0, 3), whole[0].slice(0, 2, 5)), kExactF64);
  EXPECT_LE(nmse(rest[2].slice(0, 0, 5), whole[2].slice(0, 2, 7)), kExactF64);
}

TEST_P(EachFamily, ComputesOnlyTheOutputsThatAreAskedFor) {
  const TinyModel tiny(GetParam().config, 1);
  const CausalLM model = tiny.load();
  const Tensor whole = run_rows(model, kRows);
  TokenBatch batch = make_batch(kRows);
  batch.sequence.outputs_BO = torch::tensor({{4, 2}, {1, 1}, {0, 6}}, torch::kLong);
  const Tensor some = model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
  const Tensor none_run = model.run_layers(whole, batch.sequence, {4, 4});
  ASSERT_EQ(some.sizes(), at::IntArrayRef({3, 2, whole.size(2)}));
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t o = 0; o < 2; ++o) {
      const Tensor expected = whole[row][batch.sequence.outputs_BO[row][o].item<int64_t>()];
      EXPECT_LE(nmse(some[row][o], expected), kExactF64);
      EXPECT_TRUE(torch::equal(none_run[row][o], expected));
    }
  }
}

TEST(CausalLM, RefusesTextsForWhichDynamicScalingWouldChangeTheBase) {
  Json config = Json::parse(testing::family_models()[0].config);
  const TinyModel usual(config.dump(), 1);
  config.update({{"max_position_embeddings", 5}, {"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}});
  const TinyModel dynamic(config.dump(), 1);
  const std::vector<std::vector<TokenId>> within{{1, 17, 400, 8, 99}}, beyond{{1, 17, 400, 8, 99, 3}};
  EXPECT_TRUE(torch::equal(run_rows(dynamic.load(), within), run_rows(usual.load(), within)));
  try {
    run_rows(dynamic.load(), beyond);
    FAIL() << "nothing was refused";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "a text of 6 tokens, but the model has 5 positions: expected shorter texts");
  }
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
    EXPECT_LE(nmse(together.slice(0, begin, end), run_rows(model, {document})[0]), most_nmse) << "place " << begin;
    begin = end;
  }
  EXPECT_EQ(begin, together.size(0));
}

// by length: several in a row of attention's batch, with a rest and without; one; too long for that; equal ones apart
const std::vector<int64_t> kPackedLengths{3, 3, 3, 3, 3, 3, 3, 1, 5, 5, 5, 5, 40, 40, 90, 90, 3, 90};

TEST_P(EachFamily, RunsPackedDocumentsAsIfAlone) {
  const TinyModel tiny(GetParam().config, 1);
  const auto documents = documents_of(kPackedLengths, /*openings=*/1000);
  EXPECT_EQ(packed(documents).sequence.packed.size(), 7u);
  EXPECT_FALSE(packed(documents).sequence.places_P.defined()) << "these documents begin differently";
  expect_as_if_alone(tiny.load(), documents, kExactF64);
  // bf16's rounding sends some tokens to other experts
  const bool has_experts = tiny.config.experts.count > 0;
  expect_as_if_alone(tiny.load(has_experts ? torch::kFloat : torch::kBFloat16), documents, has_experts ? 1e-9 : 3e-3);
}

TEST(CausalLM, RunsWhatPackedDocumentsShareOnce) {
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

TEST_P(EachFamily, ComputesOnlyTheTokensOfPackedDocumentsThatAreAskedFor) {
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
TEST_P(EachFamily, RunsRaggedRowsOverAPoolAsWholeRows) {
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
                   run_rows(model, {rows[row]})[0].slice(0, static_cast<int64_t>(cuts[row]))),
              kExactF64)
        << "row " << row;
  sequence.outputs_BO = torch::tensor(outputs, torch::kLong).unsqueeze(0);
  EXPECT_LE(nmse(run(), all_ND.index_select(0, sequence.outputs_BO[0])), kExactF64);
}

TEST(CausalLM, RefusesPackedDocumentsWithAPrefixOrOfOtherLengths) {
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

TEST(CausalLM, RefusesAWeightOfAnotherShapeOrType) {
  const TinyModel tiny;
  CausalLM model = tiny.load();
  const WeightId down{WeightKind::kDown, 1};
  EXPECT_THROW(model.set_weight(down, torch::zeros({3, 3}, torch::kDouble)), std::logic_error);
  EXPECT_THROW(model.set_weight(down, torch::zeros(model.weight(down).sizes(), torch::kFloat)), std::logic_error);
  EXPECT_THROW(model.weight({WeightKind::kGateBias, 0}), std::logic_error);
}

TEST(CausalLM, WeightsCanBeAutogradLeaves) {
  const TinyModel tiny;
  CausalLM model = tiny.load();
  const WeightId down{WeightKind::kDown, 1};
  const Tensor leaf = model.weight(down).clone().requires_grad_(true);
  model.set_weight(down, leaf);
  run_rows(model, kRows).square().sum().backward();
  EXPECT_GT(leaf.grad().norm().item<double>(), 0);
}

TEST(CausalLM, NamesEveryWeightThatDoesNotFit) {
  const TinyModel tiny;
  ModelConfig other = tiny.config;
  other.d_ffn = 64;
  try {
    resolve_weights(other, tiny.checkpoint);
    FAIL();
  } catch (const CheckpointError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("model.layers.0.mlp.down_proj.weight: shape [32, 48], expected [32, 64]"), std::string::npos)
        << message;
    EXPECT_NE(message.find("model.layers.3.mlp.up_proj.weight"), std::string::npos) << message;
  }
}

TEST(Generate, EqualsAFullPassPerToken) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  std::vector<GenerateRow> rows;
  for (const auto& ids : kRows) rows.push_back({ids, 6});
  const auto generated = generate(model, rows, {});
  for (size_t row = 0; row < rows.size(); ++row) {
    std::vector<TokenId> ids = kRows[row];
    for (int i = 0; i < 6; ++i) ids.push_back(model.logits(run_rows(model, {ids})[0]).argmax(1)[-1].item<int64_t>());
    EXPECT_EQ(generated[row], std::vector<TokenId>(ids.begin() + static_cast<int64_t>(kRows[row].size()), ids.end()));
  }
}

TEST(Generate, EndsARowAtEos) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const GenerateRow row{kRows[0], 6};
  const auto free = generate(model, std::span(&row, 1), {})[0];
  const auto ended = generate(model, std::span(&row, 1), {.eos_ids = {free[3]}, .sampling = {}})[0];
  const auto first = std::find(free.begin(), free.end(), free[3]);
  EXPECT_EQ(ended, std::vector<TokenId>(free.begin(), first));
}

TEST(Generate, SamplesByRowFromTheSeed) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const std::vector<GenerateRow> rows{{kRows[0], 8}, {kRows[2], 8}};
  const auto once = generate(model, rows, {.eos_ids = {}, .sampling = {.top_k = 5, .seed = 3}});
  EXPECT_EQ(once, generate(model, rows, {.eos_ids = {}, .sampling = {.top_k = 5, .seed = 3}}));
  EXPECT_NE(once, generate(model, rows, {.eos_ids = {}, .sampling = {.top_k = 5, .seed = 4}}));
  EXPECT_EQ(once[0],
            generate(model, std::span(rows).subspan(0, 1), {.eos_ids = {}, .sampling = {.top_k = 5, .seed = 3}})[0]);
}

TEST(Generate, GivesEachRowWhatItGivesItAlone) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  std::vector<GenerateRow> rows;  // of many lengths: rows leave the batch at several steps
  for (int64_t i = 0; i < 13; ++i) rows.push_back({kRows[static_cast<size_t>(i % 3)], (i * 5) % 14});
  for (const auto& [top_k, top_p] : {std::pair{1, 1.0}, {4, 1.0}, {4, 0.8}, {0, 1.0}, {0, 0.8}}) {
    const SamplingOptions sampling{.temperature = 1.5, .top_k = top_k, .top_p = top_p, .seed = 3};
    const GenerateOptions options{.eos_ids = {}, .sampling = sampling, .batch_tokens = 1000};
    const auto together = generate(model, rows, options);
    for (size_t i = 0; i < rows.size(); ++i) {
      GenerateOptions alone = options;
      alone.first_row = static_cast<int64_t>(i);
      EXPECT_EQ(together[i].size(), static_cast<size_t>(rows[i].max_new_tokens));
      EXPECT_EQ(together[i], generate(model, std::span(&rows[i], 1), alone)[0]) << "row " << i << ", top " << top_k;
    }
  }
}

TEST(Generate, TellsOfEveryTokenAsItIsChosen) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const std::vector<GenerateRow> rows{{kRows[0], 3}, {kRows[1], 8}, {kRows[2], 0}};
  std::vector<std::vector<TokenId>> told(rows.size());
  GenerateOptions options{.eos_ids = {}, .sampling = {.temperature = 0.7, .top_k = 0, .top_p = 0.9, .seed = 2}};
  options.on_token = [&](int64_t row, TokenId id) { told[static_cast<size_t>(row)].push_back(id); };
  EXPECT_EQ(generate(model, rows, options), told);
}

TEST(Generate, RefusesSamplingOptionsOutOfTheirRange) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const GenerateRow row{kRows[0], 3};
  EXPECT_THROW(generate(model, std::span(&row, 1), {.eos_ids = {}, .sampling = {.top_k = -1}}), ConfigError);
}

TEST(Generate, SamplesFromTheWholeDistribution) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  constexpr int64_t kDraws = 4096, kGroups = 16;
  const std::vector<GenerateRow> rows(kDraws, GenerateRow{kRows[0], 1});
  const auto drawn =
      generate(model, rows, {.eos_ids = {}, .sampling = {.top_k = 0, .seed = 11}, .batch_tokens = 1'000'000});
  // Ids in order of their logits, in groups of equal number: each is drawn as often as its probability says.
  const Tensor logits_V = model.logits(run_rows(model, {kRows[0]})[0])[-1];
  const Tensor rank_V = torch::floor_divide(logits_V.argsort().argsort() * kGroups, logits_V.size(0));
  const Tensor share_G = torch::zeros({kGroups}, torch::kDouble).index_add(0, rank_V, torch::softmax(logits_V, 0));
  std::vector<double> counts(kGroups, 0);
  for (const auto& ids : drawn) counts[static_cast<size_t>(rank_V[ids.at(0)].item<int64_t>())] += 1;
  EXPECT_GT(share_G[-1].item<double>(), 1.05 * share_G[0].item<double>());  // or the groups tell nothing
  for (int64_t group = 0; group < kGroups; ++group) {
    const double share = share_G[group].item<double>();
    const double deviation = std::sqrt(kDraws * share * (1 - share));
    EXPECT_NEAR(counts[static_cast<size_t>(group)], kDraws * share, 4 * deviation) << "group " << group;
  }
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
