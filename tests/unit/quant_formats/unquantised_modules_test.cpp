#include "lancet/quant_formats/unquantised_modules.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "lancet/core/error.h"
#include "lancet/quant_formats/quant_scheme.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace testing;

std::string config_of(std::string_view settings) {
  return R"({"zeta": 1.5e-06, "quantization_config": )" + std::string(settings) + R"(, "alpha": ["ä"]})";
}

std::optional<MatrixCode> code_in(std::string_view config, std::string_view module) {
  return QuantScheme::parse(config, {}, "config.json")->code_of(module);
}

const std::vector<std::string> kEdited{"model.layers.1.mlp.down_proj", "model.layers.3.mlp.experts.1.down_proj"};
const std::vector<std::string> kOthers{"model.layers.1.mlp.up_proj",
                                       "model.layers.10.mlp.down_proj",
                                       "model.layers.11.mlp.down_proj",
                                       "model.layers.0.mlp.down_proj",
                                       "model.layers.3.mlp.experts.0.down_proj",
                                       "model.layers.3.mlp.experts.10.down_proj",
                                       "model.layers.3.mlp.experts.11.down_proj",
                                       "model.layers.13.mlp.experts.1.down_proj",
                                       "model.layers.3.mlp.experts.1.up_proj",
                                       "model.layers.1.self_attn.o_proj"};

/// Every method without a list, with an empty one, and with one that says something.
const std::vector<std::string> kSettings{
    R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})",
    R"({"load_in_8bit": true, "llm_int8_skip_modules": null})",
    R"({"load_in_8bit": true, "llm_int8_skip_modules": []})",
    R"({"load_in_8bit": true, "llm_int8_skip_modules": ["lm_head", "model.layers.0."]})",
    R"({"quant_method": "gptq", "bits": 4, "group_size": 32})",
    R"({"quant_method": "gptq", "bits": 4, "dynamic": false})",
    R"({"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*down.*": {"bits": 8}, "-:.*\\.0\\..*": {}, "-:.*": {}}})",
    R"({"quant_method": "awq", "bits": 4})",
    R"({"quant_method": "awq", "bits": 4, "modules_to_not_convert": ["mlp.gate"]})",
    R"({"quant_method": "fp8", "weight_block_size": [128, 128]})",
    R"({"quant_method": "fp8", "modules_to_not_convert": ["lm_head", "model.layers.0.mlp.down_proj"]})",
    R"({"quant_method": "fp8", "ignored_layers": ["lm_head"]})",
    R"({"quant_method": "fbgemm_fp8"})",
    R"({"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]})",
    R"({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["model.layers.0.self_attn.q_proj", "lm_head"]})",
    R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {
        "a": {"targets": ["Linear"], "weights": {"num_bits": 4}},
        "b": {"targets": ["re:.*down_proj"], "weights": {"num_bits": 8}}}})",
    R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head", "re:.*\\.0\\..*"],
        "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 4}}}})"};

TEST(UnquantisedModules, AreNotNamedForAGgufFileWhichSaysItOfEachTensor) {
  EXPECT_THROW(with_unquantised(config_of(R"({"quant_method": "gguf"})"), kEdited, kOthers), CheckpointError);
}

TEST(UnquantisedModules, AreNamedByEveryMethodAndNoOthersAre) {
  for (const std::string& settings : kSettings) {
    const std::string before = config_of(settings);
    for (const std::span<const std::string> others : {std::span<const std::string>(), std::span(kOthers)}) {
      const std::string after = with_unquantised(before, kEdited, others);
      for (const std::string& module : kEdited) EXPECT_FALSE(code_in(after, module)) << after << module;
      for (const std::string& module : kOthers) EXPECT_EQ(code_in(after, module), code_in(before, module)) << after;
      EXPECT_EQ(with_unquantised(after, kEdited, others), after);
    }
  }
}

nlohmann::ordered_json settings_after(std::string_view settings, std::span<const std::string> modules) {
  return nlohmann::ordered_json::parse(with_unquantised(config_of(settings), modules)).at("quantization_config");
}

TEST(UnquantisedModules, StandInTheMethodsOwnList) {
  const std::vector<std::string> modules{"a.b"};
  const std::vector<std::pair<const char*, const char*>> cases{
      {R"({"load_in_8bit": true})", R"({"load_in_8bit":true,"llm_int8_skip_modules":["lm_head","embed_out","a.b"]})"},
      {R"({"load_in_8bit": true, "llm_int8_skip_modules": []})",
       R"({"load_in_8bit":true,"llm_int8_skip_modules":["a.b"]})"},
      {R"({"quant_method": "gptq", "bits": 4, "dynamic": {"+:x": {"bits": 8}, "-:y": {}}})",
       R"({"quant_method":"gptq","bits":4,"dynamic":{"-:^a\\.b$":{},"+:x":{"bits":8},"-:y":{}}})"},
      {R"({"quant_method": "awq", "modules_to_not_convert": null, "bits": 4})",
       R"({"quant_method":"awq","modules_to_not_convert":["a.b"],"bits":4})"},
      {R"({"quant_method": "fp8"})",
       R"({"quant_method":"fp8","modules_to_not_convert":["lm_head","embed_out","a.b"]})"},
      {R"({"quant_method": "fp8", "ignored_layers": ["c"], "modules_to_not_convert": ["c"]})",
       R"({"quant_method":"fp8","ignored_layers":["c","a.b"],"modules_to_not_convert":["c","a.b"]})"},
      {R"({"quant_method": "fbgemm_fp8", "modules_to_not_convert": ["lm_head"]})",
       R"({"quant_method":"fbgemm_fp8","modules_to_not_convert":["lm_head","a.b"]})"}};
  for (const auto& [settings, expected] : cases) EXPECT_EQ(settings_after(settings, modules).dump(), expected);
}

TEST(UnquantisedModules, OfMxfp4AreWholeBlocksOfExperts) {
  const std::vector<std::string> modules{"model.layers.1.mlp"}, others{"model.layers.0.mlp", "model.layers.11.mlp"};
  const std::string before = config_of(R"({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})");
  const std::string after = with_unquantised(before, modules, others);
  EXPECT_EQ(nlohmann::json::parse(after)["/quantization_config/modules_to_not_convert"_json_pointer].dump(),
            R"(["lm_head","model.layers.1.mlp"])");
  EXPECT_FALSE(code_in(after, "model.layers.1.mlp.experts.down_proj"));
  EXPECT_TRUE(code_in(after, "model.layers.11.mlp.experts.down_proj"));
}

TEST(UnquantisedModules, LeaveTheRestOfTheTextAlone) {
  EXPECT_EQ(
      with_unquantised(config_of(R"({"quant_method": "awq", "bits": 4})"), std::vector<std::string>{"m"}),
      "{\n  \"zeta\": 1.5e-06,\n  \"quantization_config\": {\n    \"quant_method\": \"awq\",\n    \"bits\": 4,\n    "
      "\"modules_to_not_convert\": [\n      \"m\"\n    ]\n  },\n  \"alpha\": [\n    \"ä\"\n  ]\n}\n");
  const std::string nested = R"({"text_config": {"quantization_config": {"load_in_8bit": true, "strange": 1}}})";
  EXPECT_EQ(nlohmann::json::parse(with_unquantised(nested, kEdited))
                .at("/text_config/quantization_config/llm_int8_skip_modules"_json_pointer)
                .size(),
            4U);
}

TEST(UnquantisedModules, AreNotNamedTwice) {
  const std::vector<std::string> modules{"model.layers.0.mlp.up_proj", "lm_head", "a", "a"};
  EXPECT_EQ(
      settings_after(R"({"load_in_8bit": true, "llm_int8_skip_modules": ["lm_head", "model.layers.0."]})", modules)
          .at("llm_int8_skip_modules")
          .dump(),
      R"(["lm_head","model.layers.0.","a"])");
}

TEST(UnquantisedModules, AreWrittenAsExpressionsWhereTheirNamesWouldTakeOthersAlong) {
  const std::vector<std::string> modules{"model.layers.1.mlp.gate"}, others{"model.layers.1.mlp.gate_proj"};
  for (const char* settings : {R"({"load_in_8bit": true})", R"({"quant_method": "fp8"})"}) {
    const std::string after = with_unquantised(config_of(settings), modules, others);
    EXPECT_NE(after.find(R"(^model\\.layers\\.1\\.mlp\\.gate$)"), std::string::npos) << after;
    EXPECT_FALSE(code_in(after, modules[0]));
    EXPECT_TRUE(code_in(after, others[0]));
  }
  expect_says(message_of<CheckpointError>(
                  [&] { with_unquantised(config_of(R"({"quant_method": "awq", "bits": 4})"), modules, others); }),
              {"modules_to_not_convert", "'model.layers.1.mlp.gate'", "'model.layers.1.mlp.gate_proj'", "adapter"});
  const std::vector<std::string> strange{"a+(b).c"};
  for (const std::string& settings : kSettings)
    EXPECT_FALSE(code_in(with_unquantised(config_of(settings), strange), strange[0])) << settings;
}

TEST(UnquantisedModules, AreRefusedWhereTheSettingsAreNotUnderstood) {
  const auto refusal = [](const std::string& text) {
    return message_of<CheckpointError>([&] { with_unquantised(text, kEdited); });
  };
  expect_says(refusal("{}"), {"config.json", "got 0"});
  expect_says(refusal("[1"), {"config.json", "not valid JSON"});
  expect_says(refusal(R"({"a": 1, "a": 2})"), {"'a' stands twice"});
  expect_says(refusal(config_of("3")), {"quantization_config: expected an object, got 3"});
  expect_says(refusal(config_of(R"({"quant_method": "aqlm"})")), {"'aqlm' is none of bitsandbytes, gptq"});
  expect_says(refusal(config_of(R"({"quant_method": "gptq", "bits": 4, "dynamic": [1]})")), {"dynamic: expected an"});
  expect_says(refusal(config_of(R"({"load_in_8bit": true, "llm_int8_skip_modules": "a"})")), {"a list of texts"});
  expect_says(refusal(R"({"quantization_config": {"load_in_8bit": true}, "compression_config": {"bits": 4}})"),
              {"got 2"});
}

TEST(UnquantisedModules, SurviveEveryDamage) {
  constexpr uint64_t kSeed = 20261124;
  std::mt19937_64 random(kSeed);
  size_t n_written = 0, n_refused = 0;
  for (size_t i = 0; i < 4000; ++i) {
    const std::string text = damaged(config_of(kSettings[i % kSettings.size()]), random);
    try {
      const std::string after = with_unquantised(text, kEdited, kOthers);
      EXPECT_EQ(with_unquantised(after, kEdited, kOthers), after);
      ++n_written;
    } catch (const CheckpointError&) {
      ++n_refused;
    }
  }
  EXPECT_GT(n_written, 50U) << "seed " << kSeed;
  EXPECT_GT(n_refused, 1000U) << "seed " << kSeed;
}

}  // namespace
}  // namespace lancet
