#include "lancet/deltas/adapter.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <set>

#include "support/adapter_support.h"
#include "support/family_models.h"

namespace lancet {
namespace {

using namespace testing;
namespace fs = std::filesystem;

ModelConfig family_config(const std::string& name) {
  for (const FamilyModel& model : family_models())
    if (model.name == name) return parse_model_config(model.config, "{}", {}, "config.json");
  throw std::logic_error("no such family model: " + name);
}

TEST_F(AdapterTest, KeepsFactorsThatFitAndFillsThemUp) {
  const ModelConfig config = tiny_config();
  const std::vector<WeightChanges> changes{random_change(config, {WeightKind::kDown, 2}, 5),
                                           random_change(config, {WeightKind::kQuery, 0}, 2)};
  const AdapterReport report = write(config, changes, {.base_model = "org/base"});
  EXPECT_EQ(report.rank, 8);
  ASSERT_EQ(report.modules.size(), 2U);
  EXPECT_EQ(report.modules[0].name, "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(report.modules[1].name, "model.layers.2.mlp.down_proj");
  EXPECT_EQ(report.modules[1].weights, (std::vector{changes[0].id}));
  EXPECT_EQ(report.modules[1].directions, 5);
  EXPECT_EQ(report.modules[1].numeric_rank, 5);
  EXPECT_NEAR(report.modules[1].norm, sum_of(changes[0].deltas).norm().item<double>(), 1e-9);
  EXPECT_EQ(report.modules[1].lost_norm, 0);
  EXPECT_EQ(report.file_bytes, static_cast<int64_t>(fs::file_size(folder / "adapter_model.safetensors")));

  const auto all = tensors();
  ASSERT_EQ(all.size(), 4U);
  const Tensor& a = all.at("base_model.model.model.layers.2.mlp.down_proj.lora_A.weight");
  const Tensor& b = all.at("base_model.model.model.layers.2.mlp.down_proj.lora_B.weight");
  const auto& factors = std::get<LowRankDelta>(changes[0].deltas[0]);
  EXPECT_EQ(a.sizes(), (std::vector<int64_t>{8, 96}));
  EXPECT_EQ(b.sizes(), (std::vector<int64_t>{80, 8}));
  EXPECT_TRUE(a.slice(0, 0, 5).equal(factors.right_RI) && b.slice(1, 0, 5).equal(factors.left_OR));
  EXPECT_EQ(a.slice(0, 5).count_nonzero().item<int64_t>() + b.slice(1, 5).count_nonzero().item<int64_t>(), 0);

  const nlohmann::json json = config_json();
  EXPECT_EQ(json.at("target_modules"),
            nlohmann::json({"model.layers.0.self_attn.q_proj", "model.layers.2.mlp.down_proj"}));
  EXPECT_EQ(json.at("r"), 8);
  EXPECT_EQ(json.at("lora_alpha"), 8);
  EXPECT_EQ(json.at("base_model_name_or_path"), "org/base");
  EXPECT_EQ(json.at("fan_in_fan_out"), false);
}

TEST_F(AdapterTest, IsReadBackAsItWasWritten) {
  const ModelConfig config = tiny_config();
  const std::vector<WeightChanges> changes{random_change(config, {WeightKind::kHead, 0}, 1),
                                           random_change(config, {WeightKind::kValue, 1}, 3),
                                           random_change(config, {WeightKind::kUp, 1}, 8)};
  write(config, changes);
  const std::vector<WeightChanges> read = read_adapter(folder.path(), config);
  ASSERT_EQ(read.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read[i].id, changes[i].id);
    const auto &got = std::get<LowRankDelta>(read[i].deltas.at(0)),
               &given = std::get<LowRankDelta>(changes[i].deltas[0]);
    EXPECT_TRUE(got.left_OR.equal(given.left_OR) && got.right_RI.equal(given.right_RI));
  }
}

TEST_F(AdapterTest, TakesTheLeastRankThatHoldsAllChanges) {
  const ModelConfig config = tiny_config();
  for (const auto& [directions, rank] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {2, 8}, {9, 16}, {33, 64}, {65, 128}})
    EXPECT_EQ(write(config, {random_change(config, {WeightKind::kDown, 0}, directions),
                             random_change(config, {WeightKind::kDown, 1}, 1)})
                  .rank,
              rank);
}

TEST_F(AdapterTest, FactorsAgainWhatHasFewerDirectionsThanItWasGivenWith) {
  const ModelConfig config = tiny_config();
  const LowRankDelta base = random_factors(80, 3, 96);
  WeightChanges change{{WeightKind::kDown, 1}, {}};
  for (int i = 0; i < 20; ++i)  // 60 directions, 3 different ones
    change.deltas.emplace_back(LowRankDelta{base.left_OR.mm(torch::randn({3, 3})), base.right_RI});
  const AdapterReport report = write(config, {change});
  EXPECT_EQ(report.rank, 8);
  EXPECT_EQ(report.modules[0].directions, 60);
  EXPECT_EQ(report.modules[0].numeric_rank, 3);
  const Tensor sum = sum_of(change.deltas), written = product("model.layers.1.mlp.down_proj");
  EXPECT_LT(((sum - written).norm() / sum.norm()).item<double>(), 1e-6);
  EXPECT_NEAR(report.modules[0].lost_norm, (sum - written).norm().item<double>(), 1e-9 * report.modules[0].norm);
  // as much of the singular values on either side
  const auto all = tensors();
  const Tensor a = all.at("base_model.model.model.layers.1.mlp.down_proj.lora_A.weight");
  const Tensor b = all.at("base_model.model.model.layers.1.mlp.down_proj.lora_B.weight");
  EXPECT_TRUE(a.norm(2, 1).allclose(b.norm(2, 0), 1e-5, 1e-5));
}

TEST_F(AdapterTest, FactorsDenseChangesAndSumsOfBothKinds) {
  const ModelConfig config = tiny_config();
  const LowRankDelta inner = random_factors(80, 6, 96);
  const WeightChanges change{{WeightKind::kDown, 3},
                             {DenseDelta{inner.left_OR.mm(inner.right_RI)}, random_factors(80, 2, 96, at::kDouble)}};
  const AdapterReport report = write(config, {change});
  EXPECT_EQ(report.modules[0].numeric_rank, 8);
  EXPECT_EQ(report.rank, 8);
  const Tensor sum = sum_of(change.deltas);
  EXPECT_LT(((sum - product("model.layers.3.mlp.down_proj")).norm() / sum.norm()).item<double>(), 1e-6);
}

TEST_F(AdapterTest, RefusesOrTruncatesWhatIsTooMuchAndSaysWhatIsLost) {
  const ModelConfig config = tiny_config();
  const WeightChanges change = random_change(config, {WeightKind::kDown, 0}, 20);
  expect_says(refusal<ConfigError>(config, {change}, {.largest_rank = 16}),
              {"at most 16", "model.layers.0.mlp.down_proj: rank 20", "% of the change's norm"});
  const AdapterReport report = write(config, {change}, {.largest_rank = 16, .excess = ExcessRank::kTruncate});
  EXPECT_EQ(report.rank, 16);
  EXPECT_EQ(report.modules[0].numeric_rank, 20);
  const Tensor sum = sum_of(change.deltas), lost = sum - product("model.layers.0.mlp.down_proj");
  const Tensor values = std::get<1>(at::linalg_svd(sum, false));
  EXPECT_NEAR(report.modules[0].lost_norm, lost.norm().item<double>(), 1e-9 * report.modules[0].norm);
  // Eckart and Young: no nearer one is possible
  EXPECT_NEAR(report.modules[0].lost_norm, values.slice(0, 16).norm().item<double>(), 1e-6 * report.modules[0].norm);
  EXPECT_GT(report.modules[0].relative_loss(), 0.01);
}

TEST_F(AdapterTest, CountsTheRoundingOfNarrowFactorsAsLost) {
  const ModelConfig config = tiny_config();
  const WeightChanges change = random_change(config, {WeightKind::kDown, 0}, 4);
  for (const DType type : {DType::kBF16, DType::kF16}) {
    const AdapterReport report = write(config, {change}, {.dtype = type});
    const Tensor lost = sum_of(change.deltas) - product("model.layers.0.mlp.down_proj");
    EXPECT_NEAR(report.modules[0].lost_norm, lost.norm().item<double>(), 1e-9 * report.modules[0].norm);
    EXPECT_GT(report.modules[0].lost_norm, 0);
    EXPECT_LT(report.modules[0].relative_loss(), 0.01);
  }
}

TEST_F(AdapterTest, PutsPartsOfATensorIntoTheirRows) {
  const ModelConfig config = family_config("Phi3");
  const WeightChanges gate = random_change(config, {WeightKind::kGate, 1}, 2),
                      up = random_change(config, {WeightKind::kUp, 1}, 3),
                      key = random_change(config, {WeightKind::kKey, 2}, 1);
  const AdapterReport report = write(config, {up, key, gate});
  EXPECT_EQ(report.rank, 8);
  ASSERT_EQ(report.modules.size(), 2U);
  const Tensor both = product("model.layers.1.mlp.gate_up_proj");
  EXPECT_TRUE(both.allclose(torch::cat({sum_of(gate.deltas), sum_of(up.deltas)}, 0), 1e-12, 1e-12));
  const Tensor qkv = product("model.layers.2.self_attn.qkv_proj");
  const int64_t queries = weight_spec(config, {WeightKind::kQuery, 2}).shape[0];
  EXPECT_EQ(qkv.slice(0, 0, queries).count_nonzero().item<int64_t>(), 0);
  EXPECT_TRUE(qkv.slice(0, queries, queries + sum_of(key.deltas).size(0)).allclose(sum_of(key.deltas), 1e-12, 1e-12));
  const std::vector<WeightChanges> read = read_adapter(folder.path(), config);
  ASSERT_EQ(read.size(), 3U);
  EXPECT_TRUE(sum_of(read[0].deltas).allclose(sum_of(gate.deltas), 1e-12, 1e-12));
  EXPECT_TRUE(sum_of(read[1].deltas).allclose(sum_of(up.deltas), 1e-12, 1e-12));
  EXPECT_TRUE(sum_of(read[2].deltas).allclose(sum_of(key.deltas), 1e-12, 1e-12));
}

/// Every matrix of every family: what is read is what was written, or it is refused by name.
TEST_F(AdapterTest, TakesEveryMatrixOfEveryFamilyOrRefusesItByName) {
  size_t n_written = 0, n_refused = 0;
  for (const FamilyModel& model : family_models()) {
    const ModelConfig config = parse_model_config(model.config, "{}", {}, "config.json");
    std::set<std::pair<WeightKind, std::vector<int64_t>>> seen;
    for (const WeightSpec& spec : weight_table(config)) {
      if (spec.id.layer > 1 || !seen.emplace(spec.id.kind, spec.shape).second) continue;
      const TempDir place;
      if (spec.shape.size() != 2) {
        const std::vector<WeightChanges> vector{{spec.id, {DenseDelta{torch::ones(spec.shape)}}}};
        expect_says(message_of<ConfigError>([&] { write_adapter(place.path(), config, vector, {}); }),
                    {spec.name, "no matrix"});
        continue;
      }
      const std::vector<WeightChanges> changes{random_change(config, spec.id, 3)};
      try {
        write_adapter(place.path(), config, changes, {});
      } catch (const ConfigError& error) {
        expect_says(error.what(), {spec.name});
        ++n_refused;
        continue;
      }
      const std::vector<WeightChanges> read = read_adapter(place.path(), config);
      ASSERT_EQ(read.size(), 1U) << model.name << " " << spec.name;
      EXPECT_EQ(read[0].id, spec.id) << model.name;
      EXPECT_LT(nmse(sum_of(read[0].deltas), sum_of(changes[0].deltas)), 1e-12) << model.name << " " << spec.name;
      ++n_written;
    }
  }
  EXPECT_GT(n_written, 100U);
  EXPECT_GT(n_refused, 10U);
}

TEST_F(AdapterTest, WritesAllThatPeftStacksWithExperts) {
  const ModelConfig config = family_config("Qwen3Moe");
  int64_t layer = 0;
  while (!config.has_experts(layer)) ++layer;
  const WeightSpec spec = weight_spec(config, {WeightKind::kUp, layer});
  const int64_t width = config.experts.d_ffn;
  LowRankDelta factors = random_factors(spec.shape[0], 2, spec.shape[1]);
  factors.left_OR.slice(0, width).zero_();  // the first expert alone
  const std::vector<WeightChanges> changes{{spec.id, {factors}}};
  const AdapterReport report = write(config, changes);
  EXPECT_EQ(report.modules.size(), 1U);
  EXPECT_EQ(config_json().at("target_modules").size(), static_cast<size_t>(3 * config.experts.count));
  EXPECT_EQ(tensors().size(), static_cast<size_t>(6 * config.experts.count));
  const std::vector<WeightChanges> read = read_adapter(folder.path(), config);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_TRUE(sum_of(read[0].deltas).allclose(sum_of(changes[0].deltas), 1e-12, 1e-12));
}

TEST_F(AdapterTest, RefusesWhatCannotBeWritten) {
  const ModelConfig config = tiny_config();
  const WeightId down{WeightKind::kDown, 0};
  expect_says(refusal<ConfigError>(config, {random_change(config, {WeightKind::kEmbedding, 0}, 1)}),
              {"model.embed_tokens.weight: it is a table of embeddings", "whole checkpoint"});
  expect_says(refusal<ConfigError>(config, {}), {"none that changes anything"});
  expect_says(refusal<ConfigError>(config, {{down, {DenseDelta{torch::zeros({80, 96})}}}}), {"none that changes"});
  expect_says(refusal<ConfigError>(config, {random_change(config, down, 1)}, {.dtype = DType::kF64}), {"got F64"});
  expect_says(refusal<ConfigError>(config, {random_change(config, down, 1)}, {.largest_rank = 100}),
              {"1, 8, 16", "got 100"});
  expect_says(refusal<NumericError>(config, {{down, {DenseDelta{torch::full({80, 96}, NAN)}}}}), {"down_proj", "NaN"});
  expect_says(refusal<NumericError>(config, {{down, {LowRankDelta{torch::full({80, 1}, 1e6), torch::ones({1, 96})}}}},
                                    {.dtype = DType::kF16}),
              {"down_proj", "another type"});
  EXPECT_THROW(write(config, {{down, {DenseDelta{torch::ones({96, 80})}}}}), std::logic_error);
}

}  // namespace
}  // namespace lancet
