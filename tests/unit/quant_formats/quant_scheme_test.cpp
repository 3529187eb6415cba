#include "lancet/quant_formats/quant_scheme.h"

#include <gtest/gtest.h>

#include <random>

#include "lancet/core/error.h"
#include "support/io_support.h"

namespace lancet {
namespace {

using namespace testing;

std::string with_settings(std::string_view settings) {
  return R"({"quantization_config": )" + std::string(settings) + "}";
}

QuantScheme scheme_of(std::string_view settings) {
  return *QuantScheme::parse(with_settings(settings), {}, "config.json");
}

MatrixCode usual_code(std::string_view settings) {
  return *scheme_of(settings).code_of("model.layers.3.mlp.down_proj");
}

std::string refusal_of(std::string_view settings) {
  return message_of<CheckpointError>([&] { QuantScheme::parse(with_settings(settings), {}, "config.json"); });
}

constexpr const char* kCompressed = R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
  "quantization_status": "compressed", "ignore": ["lm_head", "re:.*gate$"], "config_groups": {
    "a": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128}},
    "b": {"targets": ["re:.*down_proj"], "weights": {"num_bits": 8, "symmetric": false, "strategy": "channel"}},
    "c": {"targets": ["model.layers.0.mlp.down_proj"], "format": "float-quantized",
          "weights": {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 64]}}}})";

TEST(QuantScheme, IsNoneWhereNothingIsQuantised) {
  for (const char* config : {"{}", R"({"quantization_config": null})", R"({"quantization_config": false, "a": 1})"})
    EXPECT_FALSE(QuantScheme::parse(config, {}, "config.json")) << config;
}

TEST(QuantScheme, ReadsGptq) {
  const MatrixCode code = usual_code(R"({"quant_method": "gptq", "bits": 3, "group_size": -1, "desc_act": true,
    "sym": false, "checkpoint_format": "gptq_v2", "damp_percent": 0.1, "meta": {"quantizer": ["gptqmodel:1.0"]}})");
  EXPECT_EQ(code.packing, MatrixPacking::kGptq);
  EXPECT_EQ(code.bits, 3);
  EXPECT_EQ(code.block.columns, 0);
  EXPECT_TRUE(code.ordered);
  EXPECT_FALSE(code.symmetric);
  EXPECT_EQ(code.zeros, ZeroPoints::kStored);
  EXPECT_EQ(usual_code(R"({"quant_method": "gptq", "bits": 4})").zeros, ZeroPoints::kStoredLessOne);
  EXPECT_EQ(usual_code(R"({"quant_method": "gptq", "bits": 4})").block.columns, 128);
}

TEST(QuantScheme, TakesTheFirstOfGptqsExpressionsInTheFilesOrder) {
  const QuantScheme scheme = scheme_of(R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "dynamic": {
    "-:.*\\.0\\..*": {}, "+:.*down.*": {"bits": 8}, "+:.*": {"group_size": 64}, "-:.*": {}}})");
  EXPECT_FALSE(scheme.code_of("model.layers.0.mlp.down_proj"));
  EXPECT_EQ(scheme.code_of("model.layers.1.mlp.down_proj")->bits, 8);
  EXPECT_EQ(scheme.code_of("model.layers.1.mlp.down_proj")->block.columns, 32);
  EXPECT_EQ(scheme.code_of("model.layers.1.mlp.up_proj")->bits, 4);
  EXPECT_EQ(scheme.code_of("model.layers.1.mlp.up_proj")->block.columns, 64);
  // what tensors show to be quantised is, whatever the lists say
  EXPECT_EQ(scheme.code_of_packed("model.layers.0.mlp.down_proj")->bits, 8);
}

TEST(QuantScheme, LeavesTheTypesOfAGgufFileToItsTensors) {
  const MatrixCode code = usual_code(R"({"quant_method": "gguf"})");
  EXPECT_EQ(code.packing, MatrixPacking::kGguf);
  EXPECT_EQ(code.block_type, 0U);
  EXPECT_NE(refusal_of(R"({"quant_method": "gguf", "bits": 4})").find("bits"), std::string::npos);
}

TEST(QuantScheme, ReadsAwq) {
  const QuantScheme scheme = scheme_of(R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 64, "zero_point": true,
    "version": "GEMM", "modules_to_not_convert": ["self_attn"], "backend": "autoawq", "do_fuse": false})");
  const MatrixCode code = *scheme.code_of("model.layers.3.mlp.down_proj");
  EXPECT_EQ(code.packing, MatrixPacking::kAwq);
  EXPECT_EQ(code.block.columns, 64);
  EXPECT_EQ(code.zeros, ZeroPoints::kStored);
  EXPECT_FALSE(scheme.code_of("model.layers.3.self_attn.q_proj"));
}

TEST(QuantScheme, ReadsBitsAndBytes) {
  const MatrixCode four = usual_code(R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "load_in_8bit": false,
    "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true, "bnb_4bit_compute_dtype": "bfloat16",
    "_load_in_4bit": true, "_load_in_8bit": false, "llm_int8_threshold": 6.0})");
  EXPECT_EQ(four.packing, MatrixPacking::kBitsAndBytes4);
  EXPECT_TRUE(four.nested);
  const QuantScheme eight =
      scheme_of(R"({"load_in_8bit": true, "llm_int8_skip_modules": ["lm_head", "model.layers.0."]})");
  EXPECT_EQ(eight.method(), "bitsandbytes");
  EXPECT_EQ(eight.code_of("model.layers.1.mlp.up_proj")->packing, MatrixPacking::kBitsAndBytes8);
  EXPECT_FALSE(eight.code_of("model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(eight.code_of("lm_head"));
}

TEST(QuantScheme, ReadsFloat8) {
  const MatrixCode blocks = usual_code(
      R"({"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 64], "activation_scheme": "dynamic"})");
  EXPECT_EQ(blocks.packing, MatrixPacking::kFloat8);
  EXPECT_EQ(blocks.block.rows, 128);
  EXPECT_EQ(blocks.block.columns, 64);
  EXPECT_EQ(usual_code(R"({"quant_method": "fp8", "activation_scheme": "static"})").block.rows, 0);
  EXPECT_EQ(usual_code(R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0})").block.rows, 1);
}

TEST(QuantScheme, ReadsMxfp4AsOfExpertsAlone) {
  const QuantScheme scheme = scheme_of(R"({"quant_method": "mxfp4", "dequantize": true, "modules_to_not_convert": [
    "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.layers.1.mlp", "model.embed_tokens", "lm_head"]})");
  const std::optional<MatrixCode> code = scheme.code_of("model.layers.11.mlp.experts.down_proj");
  ASSERT_TRUE(code);
  EXPECT_EQ(code->packing, MatrixPacking::kMxfp4);
  EXPECT_EQ(code->block, (ScaleBlock{1, 32}));
  for (const char* other : {"model.layers.1.mlp.experts.down_proj", "model.layers.0.self_attn.q_proj",
                            "model.layers.0.mlp.router", "model.layers.0.mlp.gate_proj", "lm_head"})
    EXPECT_FALSE(scheme.code_of(other)) << other;
  EXPECT_EQ(scheme.unit_of("model.layers.11.mlp.experts.gate_up_proj"), "model.layers.11.mlp");
  EXPECT_EQ(scheme_of(R"({"load_in_8bit": true})").unit_of("a.mlp.experts.3.up.weight"), "a.mlp.experts.3.up");
}

TEST(QuantScheme, ReadsGroupsOfCompressedTensorsByHowMuchTheySay) {
  const QuantScheme scheme = scheme_of(kCompressed);
  EXPECT_EQ(scheme.code_of("model.layers.0.mlp.down_proj")->packing, MatrixPacking::kFloat8);
  EXPECT_EQ(scheme.code_of("model.layers.0.mlp.down_proj")->block.rows, 128);
  EXPECT_EQ(scheme.code_of("model.layers.1.mlp.down_proj")->bits, 8);
  EXPECT_EQ(scheme.code_of("model.layers.1.mlp.down_proj")->zeros, ZeroPoints::kStored);
  EXPECT_EQ(scheme.code_of("model.layers.1.mlp.up_proj")->bits, 4);
  EXPECT_EQ(scheme.code_of("model.layers.1.mlp.up_proj")->block.columns, 128);
  EXPECT_FALSE(scheme.code_of("lm_head"));
  EXPECT_FALSE(scheme.code_of("model.layers.1.mlp.gate"));
  EXPECT_TRUE(scheme.leaves_aside("model.layers.1.mlp.up_proj.input_scale"));
  EXPECT_FALSE(scheme.leaves_aside("model.layers.1.mlp.up_proj.weight_scale"));
}

TEST(QuantScheme, KnowsWhatAModuleHasBesideItsWeight) {
  const QuantScheme scheme = scheme_of(kCompressed);
  const auto has = [&](std::string_view module, const std::string& name) {
    const std::vector<std::string> names = scheme.aside_names(module);
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(has("a.mlp.up_proj", "a.mlp.up_proj.input_scale"));
  EXPECT_TRUE(has("a.mlp.up_proj", "a.mlp.up_proj.output_scale"));
  EXPECT_TRUE(has("a.k_proj", "a.k_proj.input_scale"));
  EXPECT_FALSE(has("a.k_proj", "a.k_proj.output_scale"));
  EXPECT_TRUE(scheme.leaves_aside("a.k_proj.output_scale"));
  EXPECT_TRUE(scheme.leaves_aside("a.k_scale"));
}

TEST(QuantScheme, ReadsWhatALanguageModelInAnotherHas) {
  const std::optional<QuantScheme> scheme =
      QuantScheme::parse(R"({"text_config": {"quantization_config": {"load_in_8bit": true}}})", {}, "config.json");
  EXPECT_EQ(scheme->method(), "bitsandbytes");
}

TEST(QuantScheme, RefusesUnknownMethodsByName) {
  expect_says(refusal_of(R"({"quant_method": "aqlm", "in_group_size": 8})"),
              {"config.json", "quant_method: 'aqlm' is not read", "bitsandbytes, gptq, awq, fp8, fbgemm_fp8"});
  expect_says(refusal_of(R"({"load": 1})"), {"quant_method: '' is not read"});
  expect_says(refusal_of(R"({"quant_method": "exl2", "bits": 4.0})"),
              {"'exl2' is not read (weights that ExLlamaV2 has packed)", "the one that is not quantised"});
  expect_says(refusal_of(R"({"quant_method": "hqq"})"), {"'hqq' is not read (weights that HQQ has packed)"});
  expect_says(refusal_of(R"({"bits": 4, "group_size": 64})"), {"'' is not read (weights that MLX has packed)"});
  EXPECT_FALSE(QuantScheme::parse(R"({"quantization_config": {}})", {}, "c").has_value());
  expect_says(refusal_of("7"), {"quantization_config: expected an object, got 7"});
  expect_says(message_of<CheckpointError>([] {
                QuantScheme::parse(
                    R"({"quantization_config": {"load_in_8bit": true}, "compression_config": {"bits": 4}})", {}, "c");
              }),
              {"compression_config: expected one description"});
}

TEST(QuantScheme, SaysEveryProblemAtOnce) {
  expect_says(
      refusal_of(R"({"quant_method": "gptq", "bits": 5, "group_size": 0, "sym": "yes", "checkpoint_format": "marlin",
    "pack_dtype": "int64", "dynamic": {"+:(": {}, "-:a": {}, "b": {"bits": 9, "colour": 1}}, "speed": 3})"),
      {"quantization_config.bits: expected 2, 3, 4 or 8, got 5", "quantization_config.group_size: expected", "got 0",
       "quantization_config.sym: expected true or false, got \"yes\"",
       "checkpoint_format: expected gptq or gptq_v2, which is what this version reads, got \"marlin\"",
       "pack_dtype: expected int32", "dynamic: not a regular expression: '('", "dynamic.b.bits: expected 2, 3, 4 or 8",
       "dynamic.b.colour: unknown setting", "quantization_config.speed: unknown setting", "ignore_config_keys"});
}

TEST(QuantScheme, RefusesSettingsThatMeanAnotherLayout) {
  const std::vector<std::pair<const char*, std::vector<std::string>>> cases{
      {R"({"quant_method": "awq", "version": "gemv"})", {"version: expected gemm"}},
      {R"({"quant_method": "awq", "bits": 8, "zero_point": false, "backend": "llm-awq"})",
       {"bits: expected 4, got 8", "zero_point: expected true", "backend: expected another"}},
      {R"({"quant_method": "bitsandbytes"})", {"expected either load_in_4bit or load_in_8bit"}},
      {R"({"load_in_4bit": true, "bnb_4bit_quant_type": "nf3", "llm_int8_has_fp16_weight": true})",
       {"bnb_4bit_quant_type: expected fp4 or nf4", "llm_int8_has_fp16_weight: expected false"}},
      {R"({"quant_method": "fp8", "fmt": "e5m2", "weight_block_size": [128], "modules_to_convert": ["embed"]})",
       {"fmt: expected e4m3", "weight_block_size: expected a list of two", "modules_to_convert: expected no modules"}},
      {R"({"quant_method": "compressed-tensors"})", {"config_groups: expected an object of groups, got nothing"}},
      {R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "quantization_status": "frozen",
           "sparsity_config": {"format": "sparse-24-bitmask"}, "transform_config": {"a": 1}, "config_groups": {
             "g": {"targets": ["Linear", "re:("], "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group",
                   "symmetric": false, "dynamic": true, "actorder": "fast"}}, "h": 3}})",
       {"4 bits of a float as nvfp4-pack-quantized", "sparsity_config: expected null",
        "transform_config: expected null", "g.weights.strategy: expected tensor or channel or group or block",
        "g.weights.dynamic: expected false", "g.weights.actorder: expected weight or static",
        "g.targets: not a regular", "h: expected an object"}},
  };
  for (const auto& [settings, parts] : cases) expect_says(refusal_of(settings), parts);
}

/// Reads schemes as the programs write them, with everything that they note beside what counts.
TEST(QuantScheme, ReadsWhatProgramsWrite) {
  const std::vector<std::pair<const char*, MatrixPacking>> written{
      {R"({"batch_size": 1, "bits": 4, "block_name_to_quantize": "model.layers", "cache_block_outputs": true, "damp_percent": 0.1,
           "dataset": "wikitext2", "desc_act": true, "exllama_config": {"version": 1}, "group_size": 128, "max_input_length": null,
           "model_seqlen": 4096, "module_name_preceding_first_block": ["model.embed_tokens"], "modules_in_block_to_quantize": null,
           "pad_token_id": 0, "quant_method": "gptq", "sym": true, "tokenizer": null, "true_sequential": true,
           "use_cuda_fp16": true, "use_exllama": true, "disable_exllama": false})",
       MatrixPacking::kGptq},
      {R"({"bits": 8, "checkpoint_format": "gptq", "damp_percent": 0.01, "desc_act": false, "group_size": 32, "dynamic": null,
           "lm_head": false, "hyb_act": false, "pack_dtype": "int32", "static_groups": false, "sym": true, "model_name_or_path": null,
           "meta": {"quantizer": ["gptqmodel:1.4.0"], "static_groups": false}, "quant_method": "gptq", "true_sequential": true})",
       MatrixPacking::kGptq},
      {R"({"bits": 4, "group_size": 128, "modules_to_not_convert": null, "quant_method": "awq", "version": "gemm",
           "zero_point": true, "backend": "autoawq", "do_fuse": false, "exllama_config": null, "fuse_max_seq_len": null,
           "modules_to_fuse": null})",
       MatrixPacking::kAwq},
      {R"({"_load_in_4bit": true, "_load_in_8bit": false, "bnb_4bit_compute_dtype": "bfloat16", "bnb_4bit_quant_storage": "uint8",
           "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true, "llm_int8_enable_fp32_cpu_offload": false,
           "llm_int8_has_fp16_weight": false, "llm_int8_skip_modules": ["lm_head", "vision_tower"], "llm_int8_threshold": 6.0,
           "load_in_4bit": true, "load_in_8bit": false, "quant_method": "bitsandbytes"})",
       MatrixPacking::kBitsAndBytes4},
      {R"({"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [128, 128]})",
       MatrixPacking::kFloat8},
      {R"({"activation_scale_ub": 1200.0, "quant_method": "fbgemm_fp8",
           "modules_to_not_convert": ["model.layers.0.self_attn.q_proj", "model.layers.125.mlp.down_proj", "lm_head"]})",
       MatrixPacking::kFloat8},
      {R"({"config_groups": {"group_0": {"input_activations": {"dynamic": true, "num_bits": 8, "strategy": "token", "type": "float"},
             "output_activations": null, "targets": ["Linear"], "weights": {"actorder": null, "block_structure": null,
             "dynamic": false, "group_size": null, "num_bits": 8, "observer": "minmax", "observer_kwargs": {},
             "strategy": "channel", "symmetric": true, "type": "float"}}}, "format": "float-quantized",
           "global_compression_ratio": 1.24, "ignore": ["lm_head"], "kv_cache_scheme": null, "quant_method": "compressed-tensors",
           "quantization_status": "compressed", "sparsity_config": {}, "transform_config": {}, "version": "0.12.2"})",
       MatrixPacking::kFloat8},
  };
  for (const auto& [settings, packing] : written) EXPECT_EQ(usual_code(settings).packing, packing) << settings;
}

TEST(QuantScheme, PassesKeysThatTheUserKnows) {
  const std::vector<std::string> ignored{"speed"};
  const std::string config = with_settings(R"({"load_in_8bit": true, "speed": 3})");
  EXPECT_TRUE(QuantScheme::parse(config, ignored, "config.json"));
  EXPECT_THROW(QuantScheme::parse(config, {}, "config.json"), CheckpointError);
}

TEST(QuantScheme, EndsExpressionsThatWouldTakeForEver) {
  const QuantScheme scheme = scheme_of(R"({"quant_method": "gptq", "bits": 4, "dynamic": {"-:(a+)+$": {}}})");
  const std::string name = std::string(64, 'a') + "b";
  expect_says(message_of<CheckpointError>([&] { scheme.code_of(name); }), {"(a+)+$", "write a simpler one"});
  EXPECT_TRUE(scheme.code_of(std::string(100'000, 'x')));
}

/// Puts another value, of any kind, after one of the text's colons: mostly it is still JSON.
std::string with_another_value(std::string text, std::mt19937_64& random) {
  constexpr const char* kValues[] = {"null",
                                     "true",
                                     "false",
                                     "0",
                                     "-1",
                                     "3",
                                     "1e999",
                                     "9223372036854775808",
                                     "\"\"",
                                     "\"gptq\"",
                                     "\"re:(\"",
                                     "[]",
                                     "{}",
                                     "[128, 128]",
                                     "[\"a\", \"re:.*\"]",
                                     R"({"a": {"bits": 8}})"};
  std::vector<size_t> colons;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == ':' && text[i - 1] == '"') colons.push_back(i + 1);
  const size_t begin = colons[random() % colons.size()];
  const size_t end = std::min(text.find_first_of(",}]", begin), text.size());
  return text.replace(begin, end - begin, kValues[random() % std::size(kValues)]);
}

TEST(QuantScheme, SurvivesEveryDamage) {
  constexpr uint64_t kSeed = 20261123;
  std::mt19937_64 random(kSeed);
  const std::vector<std::string> whole{
      with_settings(kCompressed),
      with_settings(R"({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": true, "sym": true,
        "dynamic": {"-:.*\\.0\\..*": {}, "+:.*down.*": {"bits": 8}}, "checkpoint_format": "gptq"})"),
      with_settings(R"({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": true})"),
      with_settings(R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "llm_int8_skip_modules": ["lm_head"]})"),
      with_settings(R"({"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["a.*"]})"),
  };
  size_t n_read = 0, n_refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string& config = whole[static_cast<size_t>(i) % whole.size()];
    const std::string text = i % 3 == 0 ? damaged(config, random) : with_another_value(config, random);
    try {
      if (const auto scheme = QuantScheme::parse(text, {}, "config.json")) {
        scheme->code_of("model.layers.0.mlp.down_proj");
        scheme->code_of_packed("lm_head");
        ++n_read;
      }
    } catch (const CheckpointError&) {
      ++n_refused;
    }
  }
  EXPECT_GT(n_read, 100U) << "seed " << kSeed;
  EXPECT_GT(n_refused, 1000U) << "seed " << kSeed;
}

}  // namespace
}  // namespace lancet
