#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <random>

#include "support/adapter_support.h"

namespace lancet {
namespace {

using namespace testing;
namespace fs = std::filesystem;

/// A whole adapter of one pair, and what is changed of it.
struct AdapterReading : AdapterTest {
  void SetUp() override {
    AdapterTest::SetUp();
    write(config, changes);
    json = config_json();
  }
  void store() { write_text_file(folder / "adapter_config.json", json.dump()); }
  template <typename E>
  std::string reading_refusal() {
    return message_of<E>([&] { read_adapter(folder.path(), config); });
  }
  void replace_tensors(const std::map<std::string, Tensor>& all) {
    std::vector<TensorSource> sources;
    for (const auto& [name, tensor] : all) sources.push_back(to_source(name, tensor));
    write_safetensors(folder / "adapter_model.safetensors", sources, {});
  }

  ModelConfig config = tiny_config();
  std::vector<WeightChanges> changes{random_change(config, {WeightKind::kDown, 1}, 4)};
  nlohmann::json json;
};

TEST_F(AdapterReading, ScalesAsTheConfigurationSays) {
  const Tensor sum = sum_of(changes[0].deltas);
  json["lora_alpha"] = 20;
  store();
  EXPECT_LT(nmse(sum_of(read_adapter(folder.path(), config)[0].deltas), sum * 2.5), 1e-13);
  json["use_rslora"] = true;
  store();
  EXPECT_LT(nmse(sum_of(read_adapter(folder.path(), config)[0].deltas), sum * (20 / std::sqrt(8.0))), 1e-13);
}

TEST_F(AdapterReading, RefusesByNameWhatItDoesNotKnow) {
  const nlohmann::json whole = json;
  const std::vector<std::pair<const char*, nlohmann::json>> cases{{"peft_type", "LOHA"},
                                                                  {"bias", "all"},
                                                                  {"bias", nullptr},
                                                                  {"use_dora", true},
                                                                  {"rank_pattern", {{"a", 3}}},
                                                                  {"alpha_pattern", {{"a", 3}}},
                                                                  {"modules_to_save", {"lm_head"}},
                                                                  {"lora_bias", true},
                                                                  {"layer_replication", {{0, 1}}},
                                                                  {"target_parameters", {"x"}},
                                                                  {"layers_pattern", "h"},
                                                                  {"init_lora_weights", "pissa"},
                                                                  {"init_lora_weights", "pissa_niter_4"},
                                                                  {"init_lora_weights", "olora"},
                                                                  {"init_lora_weights", "corda"},
                                                                  {"init_lora_weights", "loftq"},
                                                                  {"init_lora_weights", "lora_ga"},
                                                                  {"init_lora_weights", 3},
                                                                  {"something_new", 1}};
  for (const auto& [key, value] : cases) {
    json = whole;
    json[key] = value;
    store();
    expect_says(reading_refusal<ConfigError>(), {"adapter_config.json", key, "merge it with PEFT"});
  }
  json = whole;
  json["target_modules"] = {"down_proj"};
  store();
  auto all = tensors();
  all["base_model.model.lm_head.bias"] = torch::ones({3});
  all["base_model.model.model.embed_tokens.lora_embedding_A"] = torch::ones({3});
  replace_tensors(all);
  expect_says(reading_refusal<ConfigError>(), {"lm_head.bias", "embed_tokens.lora_embedding_A"});
  all = {{"base_model.model.model.layers.9.mlp.down_proj.lora_A.weight", torch::ones({8, 96})},
         {"base_model.model.model.layers.9.mlp.down_proj.lora_B.weight", torch::ones({80, 8})}};
  replace_tensors(all);
  expect_says(reading_refusal<ConfigError>(), {"model.layers.9.mlp.down_proj", "adapter of this model"});
}

TEST_F(AdapterReading, RefusesFactorsThatPeftWouldLeaveUnused) {
  const nlohmann::json whole = json;
  const std::string module = "model.layers.1.mlp.down_proj";
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, nlohmann::json>>{{"target_modules", {"up_proj"}},
                                                           {"target_modules", {"own_proj"}},
                                                           {"target_modules", ".*down_proj"},
                                                           {"target_modules", nlohmann::json::array()},
                                                           {"target_modules", nullptr},
                                                           {"target_modules", false},
                                                           {"target_modules", nlohmann::json::object()},
                                                           {"exclude_modules", {"mlp.down_proj"}},
                                                           {"exclude_modules", ".*"},
                                                           {"layers_to_transform", {0, 2}},
                                                           {"layers_to_transform", 0},
                                                           {"layers_to_transform", false},
                                                           {"layers_to_transform", nlohmann::json::object()},
                                                           {"layers_to_transform", "1"}}) {
    json = whole;
    json[key] = value;
    store();
    expect_says(reading_refusal<ConfigError>(), {"adapter_config.json", key, "Set target_modules"});
  }
  json = whole;
  json.erase("target_modules");
  store();
  expect_says(reading_refusal<ConfigError>(),
              {"target_modules: expected a list of names", "PEFT takes names of its own", "Set target_modules"});
  for (const auto& [key, value] :
       std::vector<std::pair<const char*, nlohmann::json>>{{"target_modules", {"down_proj"}},
                                                           {"target_modules", {"q_proj", module}},
                                                           {"target_modules", "all-linear"},
                                                           {"exclude_modules", {"up_proj"}},
                                                           {"layers_to_transform", {0, 1}},
                                                           {"layers_to_transform", 1},
                                                           {"layers_to_transform", nlohmann::json::array()},
                                                           {"exclude_modules", false},
                                                           {"fan_in_fan_out", nullptr},
                                                           {"use_rslora", nullptr},
                                                           {"init_lora_weights", "gaussian"},
                                                           {"fan_in_fan_out", true}}) {
    json = whole;
    json[key] = value;
    store();
    EXPECT_EQ(read_adapter(folder.path(), config).size(), 1u) << key << ": " << value;
  }
}

TEST_F(AdapterReading, NamesWhatIsDamaged) {
  const nlohmann::json whole = json;
  for (const auto& [key, value] : std::vector<std::pair<const char*, nlohmann::json>>{{"r", 0},
                                                                                      {"r", 7.5},
                                                                                      {"r", 1e18},
                                                                                      {"r", nullptr},
                                                                                      {"lora_alpha", "8"},
                                                                                      {"use_rslora", 3},
                                                                                      {"fan_in_fan_out", 1}}) {
    json = whole;
    json[key] = value;
    store();
    expect_says(reading_refusal<CheckpointError>(), {"adapter_config.json", key});
  }
  json = whole;
  json["r"] = 16;
  store();
  expect_says(reading_refusal<CheckpointError>(), {"down_proj", "lora_A", "[16, 96]", "got F32 [8, 96]"});
  write_text_file(folder / "adapter_config.json", "[]");
  expect_says(reading_refusal<CheckpointError>(), {"adapter_config.json", "JSON object"});
  json = whole;
  store();
  auto all = tensors();
  const std::string a = "base_model.model.model.layers.1.mlp.down_proj.lora_A.weight";
  auto missing = all;
  missing.erase(a);
  replace_tensors(missing);
  expect_says(reading_refusal<CheckpointError>(), {"model.layers.1.mlp.down_proj", "one of them"});
  auto infinite = all;
  infinite[a] = torch::full({8, 96}, INFINITY);
  replace_tensors(infinite);
  expect_says(reading_refusal<CheckpointError>(), {"finite"});
  infinite[a] = torch::ones({8, 96}, at::kInt);
  replace_tensors(infinite);
  expect_says(reading_refusal<CheckpointError>(), {"lora_A", "got I32"});
  fs::remove(folder / "adapter_model.safetensors");
  expect_says(reading_refusal<CheckpointError>(), {"adapter_model.safetensors"});
}

TEST_F(AdapterReading, SurvivesEveryDamage) {
  constexpr uint64_t kSeed = 20261125;
  std::mt19937_64 random(kSeed);
  const std::string text = json.dump();
  size_t n_read = 0, n_refused = 0;
  for (int i = 0; i < 1000; ++i) {
    write_text_file(folder / "adapter_config.json", damaged(text, random));
    try {
      read_adapter(folder.path(), config);
      ++n_read;
    } catch (const CheckpointError&) {
      ++n_refused;
    } catch (const ConfigError&) {
      ++n_refused;
    }
  }
  EXPECT_GT(n_read, 10U) << "seed " << kSeed;
  EXPECT_GT(n_refused, 100U) << "seed " << kSeed;
}

}  // namespace
}  // namespace lancet
