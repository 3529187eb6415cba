#include "lancet/models/causal_lm.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
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

/// Whether rows of `second` begin where those of `first` end.
bool follows(const CausalLM& model, WeightKind first, WeightKind second, int64_t layer) {
  const Tensor &a = model.weight({first, layer}), &b = model.weight({second, layer});
  return a.is_alias_of(b) && static_cast<const char*>(a.const_data_ptr()) + a.nbytes() == b.const_data_ptr();
}

/// Weights that are to be edited lie by themselves, each in a product of its own.
TEST_P(EachFamily, NeighboursInMemoryGiveWhatEachGives) {
  const TinyModel tiny(GetParam().config, 1);
  if (tiny.config.latent.rank > 0) return;  // its queries, keys and values are no neighbours
  int64_t layer = 1;
  while (!tiny.config.has_attention(layer)) ++layer;
  QuantiseRule apart;
  for (const WeightSpec& spec : weight_table(tiny.config)) apart.edited.push_back(spec.id);
  CausalLM model = tiny.load();
  const CausalLM separate = tiny.load(at::kDouble, {Placement::host()}, apart);
  EXPECT_TRUE(follows(model, WeightKind::kQuery, WeightKind::kKey, layer));
  EXPECT_TRUE(follows(model, WeightKind::kKey, WeightKind::kValue, layer));
  EXPECT_FALSE(follows(separate, WeightKind::kQuery, WeightKind::kKey, layer));
  const Tensor expected = run_rows(separate, kRows);
  EXPECT_LE(nmse(run_rows(model, kRows), expected), kExactF64);
  const WeightId value{WeightKind::kValue, layer};
  model.set_weight(value, model.weight(value).clone());  // as an edit does
  EXPECT_FALSE(follows(model, WeightKind::kKey, WeightKind::kValue, layer));
  EXPECT_LE(nmse(run_rows(model, kRows), expected), kExactF64);
}

TEST(CausalLM, HoldsNeighboursOnce) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const Tensor &gate = model.weight({WeightKind::kGate, 0}), &up = model.weight({WeightKind::kUp, 0});
  EXPECT_EQ(gate.storage().nbytes(), gate.nbytes() + up.nbytes());
  EXPECT_TRUE(follows(model, WeightKind::kGate, WeightKind::kUp, 0));
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

/// States of mixers are behind each row's own prompt, and move with rows that take the places of others.
class GenerateOfHybrids : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Kinds, GenerateOfHybrids,
                         ::testing::Values("qwen3_5", "lfm2", "bamba", "falcon_h1", "jamba", "nemotron_h"));

TEST_P(GenerateOfHybrids, EqualsAFullPassPerTokenWhileRowsLeave) {
  const auto& families = testing::family_models();
  const auto hybrid = std::ranges::find(families, std::string(GetParam()), &testing::FamilyModel::name);
  ASSERT_NE(hybrid, families.end());
  const TinyModel tiny(hybrid->config, 1);
  const CausalLM model = tiny.load();
  std::vector<GenerateRow> rows;
  for (int64_t i = 0; i < 9; ++i) rows.push_back({kRows[static_cast<size_t>(i % 3)], (i * 5) % 7});
  rows.push_back({{7}, 5});  // shorter than what the convolution sees
  const auto generated = generate(model, rows, {.eos_ids = {}, .sampling = {}, .batch_tokens = 1000});
  for (size_t row = 0; row < rows.size(); ++row) {
    std::vector<TokenId> ids = rows[row].prompt;
    for (int64_t i = 0; i < rows[row].max_new_tokens; ++i)
      ids.push_back(model.logits(run_rows(model, {ids})[0]).argmax(1)[-1].item<int64_t>());
    const auto added = ids.begin() + std::ssize(rows[row].prompt);
    EXPECT_EQ(generated[row], std::vector<TokenId>(added, ids.end())) << row;
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

}  // namespace
}  // namespace lancet
