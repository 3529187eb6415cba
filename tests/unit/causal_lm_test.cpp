#include "lancet/models/causal_lm.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "lancet/core/error.h"
#include "lancet/edit/activations.h"
#include "lancet/models/batching.h"
#include "lancet/models/generate.h"
#include "support/tiny_model.h"

namespace lancet {
namespace {

using testing::nmse;
using testing::TinyModel;

constexpr double kExactF64 = 1e-26;

const std::vector<std::vector<TokenId>> kRows{{1, 17, 400, 8, 99}, {1, 5}, {1, 2000, 3, 77, 3, 1000, 12}};

Tensor run_rows(const CausalLM& model, const std::vector<std::vector<TokenId>>& rows) {
  const TokenBatch batch = make_batch(rows);
  return model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers());
}

TEST(CausalLM, PaddingDoesNotReachRealTokens) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const Tensor together = run_rows(model, kRows);
  for (size_t row = 0; row < kRows.size(); ++row) {
    const Tensor alone = run_rows(model, {kRows[row]})[0];
    EXPECT_LE(nmse(together[static_cast<int64_t>(row)].slice(0, 0, alone.size(0)), alone), kExactF64);
  }
}

TEST(CausalLM, RunsInPartsWithPrefixKeysAndValues) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const Tensor whole = run_rows(model, kRows);
  // the first two tokens of every row, recorded; then the rest against that prefix
  KeyValues cache;
  TokenBatch head = make_batch(std::vector<std::vector<TokenId>>{{1, 17}, {1, 5}, {1, 2000}});
  head.sequence.record = &cache;
  model.run_layers(model.embed(head.ids_BT), head.sequence, model.all_layers());
  TokenBatch tail = make_batch(std::vector<std::vector<TokenId>>{{400, 8, 99}, {9}, {3, 77, 3, 1000, 12}});
  tail.sequence.positions_BT = tail.sequence.positions_BT + 2;
  tail.sequence.prefix = &cache;
  const Tensor rest = model.run_layers(model.embed(tail.ids_BT), tail.sequence, model.all_layers());
  EXPECT_LE(nmse(rest[0].slice(0, 0, 3), whole[0].slice(0, 2, 5)), kExactF64);
  EXPECT_LE(nmse(rest[2].slice(0, 0, 5), whole[2].slice(0, 2, 7)), kExactF64);
}

/// Packed, without copies of the documents.
TokenBatch packed(const std::vector<std::vector<TokenId>>& documents) {
  const std::vector<std::span<const TokenId>> spans(documents.begin(), documents.end());
  return make_packed_batch(spans);
}

/// Documents of the given lengths with tokens of their own.
std::vector<std::vector<TokenId>> documents_of(const std::vector<int64_t>& lengths) {
  std::vector<std::vector<TokenId>> documents;
  TokenId next = 7;
  for (const int64_t length : lengths) {
    documents.push_back({1});
    while (static_cast<int64_t>(documents.back().size()) < length)
      documents.back().push_back(next = (next * 31 + 11) % 4096);
  }
  return documents;
}

TEST(CausalLM, RunsPackedDocumentsAsIfAlone) {
  const TinyModel tiny;
  // by length: several in a row of the batch, with a rest and without; one; too long for that; equal ones apart
  const auto documents = documents_of({3, 3, 3, 3, 3, 3, 3, 1, 5, 5, 5, 5, 40, 40, 90, 90, 3, 90});
  const TokenBatch batch = packed(documents);
  EXPECT_EQ(batch.sequence.packed.size(), 7u);
  for (const at::ScalarType type : {torch::kDouble, torch::kBFloat16}) {
    const CausalLM model = tiny.load(type);
    const Tensor together = model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers())[0];
    int64_t begin = 0;
    for (const std::vector<TokenId>& document : documents) {
      const int64_t end = begin + static_cast<int64_t>(document.size());
      const double most = type == torch::kDouble ? kExactF64 : 1e-3;
      EXPECT_LE(nmse(together.slice(0, begin, end), run_rows(model, {document})[0]), most) << "token " << begin;
      begin = end;
    }
    EXPECT_EQ(begin, together.size(0));
  }
}

TEST(CausalLM, RefusesPackedDocumentsWithAPrefixOrOfOtherLengths) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  TokenBatch batch = packed(kRows);
  const Tensor h_BTD = model.embed(batch.ids_BT);
  KeyValues cache;
  batch.sequence.record = &cache;
  EXPECT_THROW(model.run_layers(h_BTD, batch.sequence, model.all_layers()), std::logic_error);
  batch.sequence.record = nullptr;
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

TEST(HookSet, SeesTheKeyAndCanReplaceTheOutput) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const TokenBatch batch = make_batch(kRows);
  Tensor key, out;
  HookSet watch;
  watch.observe({HookPoint::kMlpKey, 2}, [&](const Tensor& value) { key = value; });
  watch.observe({HookPoint::kMlpOut, 2}, [&](const Tensor& value) { out = value; });
  const Tensor plain = model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers(), watch);
  EXPECT_LE(nmse(at::linear(key, model.weight({WeightKind::kDown, 2})), out), kExactF64);

  HookSet same, changed;
  same.replace({HookPoint::kMlpOut, 2}, [](const Tensor& value) { return value.clone(); });
  changed.replace({HookPoint::kMlpOut, 2}, [](const Tensor& value) { return 2 * value; });
  EXPECT_TRUE(model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers(), same).equal(plain));
  EXPECT_FALSE(model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers(), changed).equal(plain));
}

TEST(HookSet, StopsThePassBehindASite) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const TokenBatch batch = make_batch(kRows);
  bool later = false;
  HookSet hooks;
  hooks.stop_at({HookPoint::kMlpKey, 1});
  hooks.observe({HookPoint::kMlpOut, 1}, [&](const Tensor&) { later = true; });
  EXPECT_FALSE(model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers(), hooks).defined());
  EXPECT_FALSE(later);
}

TEST(HookSet, NamesTheSiteOfABadReplacement) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const TokenBatch batch = make_batch(kRows);
  HookSet hooks;
  hooks.replace({HookPoint::kAttnOut, 3}, [](const Tensor& value) { return value.to(torch::kFloat); });
  try {
    model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers(), hooks);
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_NE(std::string(error.what()).find("hook at layer 3, attention output: expected Double"), std::string::npos)
        << error.what();
  }
}

TEST(CollectAt, EqualsTheWholePassAtTheLookupTokens) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  std::vector<LocatedPrompt> prompts;
  for (const auto& ids : kRows) prompts.push_back({ids, static_cast<int64_t>(ids.size()) / 2});
  std::vector<const LocatedPrompt*> rows;
  for (const LocatedPrompt& prompt : prompts) rows.push_back(&prompt);
  Tensor keys;
  HookSet watch;
  watch.observe({HookPoint::kMlpKey, 2}, [&](const Tensor& value) { keys = value; });
  const TokenBatch batch = make_batch(kRows);
  model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers(), watch);
  const Tensor collected = collect_at(model, rows, {HookPoint::kMlpKey, 2});
  for (size_t row = 0; row < rows.size(); ++row)
    EXPECT_LE(nmse(collected[static_cast<int64_t>(row)], keys[static_cast<int64_t>(row)][rows[row]->lookup]),
              kExactF64);
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
  const auto ended = generate(model, std::span(&row, 1), {.eos_ids = {free[3]}})[0];
  const auto first = std::find(free.begin(), free.end(), free[3]);
  EXPECT_EQ(ended, std::vector<TokenId>(free.begin(), first));
}

TEST(Generate, SamplesByRowFromTheSeed) {
  const TinyModel tiny;
  const CausalLM model = tiny.load();
  const std::vector<GenerateRow> rows{{kRows[0], 8}, {kRows[2], 8}};
  const auto once = generate(model, rows, {.eos_ids = {}, .top_k = 5, .seed = 3});
  EXPECT_EQ(once, generate(model, rows, {.eos_ids = {}, .top_k = 5, .seed = 3}));
  EXPECT_NE(once, generate(model, rows, {.eos_ids = {}, .top_k = 5, .seed = 4}));
  EXPECT_EQ(once[0], generate(model, std::span(rows).subspan(0, 1), {.eos_ids = {}, .top_k = 5, .seed = 3})[0]);
}

TEST(PlanBatches, KeepsEveryRowOnceWithinTheBudget) {
  const std::vector<int64_t> lengths{9, 1, 30, 4, 4, 7, 2, 100, 3};
  std::vector<int64_t> seen;
  for (const auto& batch : plan_batches(lengths, 20)) {
    int64_t widest = 0;
    for (const int64_t row : batch) widest = std::max(widest, lengths[static_cast<size_t>(row)]);
    EXPECT_TRUE(batch.size() == 1 || widest * static_cast<int64_t>(batch.size()) <= 20);
    seen.insert(seen.end(), batch.begin(), batch.end());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(PlanPacks, FillsPacksWithNeighboursInLength) {
  const std::vector<int64_t> lengths{9, 1, 30, 4, 4, 7, 2, 100, 3};
  std::vector<int64_t> in_order;
  const auto packs = plan_packs(lengths, 20);
  const auto length = [&](int64_t document) { return lengths[static_cast<size_t>(document)]; };
  for (size_t i = 0; i < packs.size(); ++i) {
    int64_t tokens = 0;
    for (const int64_t document : packs[i]) tokens += length(document);
    EXPECT_TRUE(packs[i].size() == 1 || tokens <= 20);
    if (i + 1 < packs.size()) EXPECT_GT(tokens + length(packs[i + 1].front()), 20) << "one more would have fitted";
    in_order.insert(in_order.end(), packs[i].begin(), packs[i].end());
  }
  EXPECT_EQ(in_order, (std::vector<int64_t>{1, 6, 8, 3, 4, 5, 0, 2, 7}));
}

}  // namespace
}  // namespace lancet
