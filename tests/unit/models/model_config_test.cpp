#include "lancet/models/model_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/models/unread_keys.h"
#include "published_configs.h"
#include "support/io_support.h"

namespace lancet {
namespace {

struct Wrong {
  const char* model;
  Json changes;
  std::string said;  ///< the key, what is expected, what came
};

void expect_refusals(const std::vector<Wrong>& wrong) {
  for (const auto& [model, changes, said] : wrong)
    EXPECT_EQ(refusal(published(model, changes)), "config.json:\n  " + said) << model;
}

constexpr const char* kUnsupported = ": it changes the computation and is not supported";

TEST(ModelConfig, RefusesSizesBeyondAllModels) {
  constexpr int64_t kHuge = 1'000'000'000;
  expect_refusals({
      {"Llama-3.2-1B", {{"num_hidden_layers", kHuge}}, "num_hidden_layers: expected at most 10000, got 1000000000"},
      {"Llama-3.2-1B", {{"vocab_size", kHuge}}, "vocab_size: expected at most 16777216, got 1000000000"},
      {"gpt2", {{"n_positions", 3'000'000'000}}, "n_positions: expected at most 2147483647, got 3000000000"},
      {"gpt2", {{"n_layer", kHuge}}, "n_layer: expected at most 10000, got 1000000000"},
      {"gpt2", {{"n_inner", kHuge}}, "n_inner: expected at most 16777216, got 1000000000"},
      {"Qwen3-30B-A3B", {{"num_experts", 20'000}}, "num_experts: expected at most 16384, got 20000"},
      {"Qwen3-30B-A3B",
       {{"num_experts", 10'000}},
       "num_experts: expected at most 200000 experts of all layers together, got 10000"},
  });
}

TEST(ModelConfig, RefusesMoreLayersThanTheCheckpointHasTensorsFor) {
  const testing::TempDir scratch;
  const std::filesystem::path folder = scratch / "model";
  testing::write_bytes(folder / "config.json", published("Llama-3.2-1B", {{"num_hidden_layers", 9'000}}).dump());
  testing::write_bytes(folder / "model.safetensors", testing::safetensors_bytes("{}", ""));
  try {
    load_model_config(Checkpoint::open(folder));
    FAIL() << "nothing was refused";
  } catch (const CheckpointError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("expected no more layers than the checkpoint has tensors for, got 9000 "
                        "layers and 0 tensors"),
              std::string::npos)
        << error.what();
  }
}

TEST(ModelConfig, NamesWrongSizesAndNumbers) {
  expect_refusals({
      {"Llama-3.2-1B", {{"hidden_size", "2048"}}, "hidden_size: expected a positive integer, got \"2048\""},
      {"Llama-3.2-1B", {{"num_hidden_layers", nullptr}}, "num_hidden_layers: expected a positive integer, got null"},
      {"Llama-3.2-1B",
       {{"num_key_value_heads", 5}},
       "num_key_value_heads: expected a divisor of num_attention_heads, 32, got 5"},
      {"gpt2", {{"n_embd", 770}}, "n_embd: expected a multiple of n_head, 12, got 770"},
      {"gpt2", {{"n_inner", -1}}, "n_inner: expected a positive integer, got -1"},
      {"gpt2",
       {{"activation_function", "mish"}},
       "activation_function: expected silu, gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu or relu2, got \"mish\""},
      {"Qwen2.5-7B", {{"use_sliding_window", 1}}, "use_sliding_window: expected true or false, got 1"},
      {"Qwen3-8B", {{"vocab_size", 0}}, "vocab_size: expected a positive integer, got 0"},
      {"OLMo-2-1124-7B",
       {{"torch_dtype", "int8"}},
       "dtype: 'int8': expected float32, bfloat16, float16, float64 or auto"},
      {"gemma-2-2b",
       {{"attn_logit_softcapping", -50.0}},
       "attn_logit_softcapping: expected a number above 0, got -50.0"},
      {"gemma-2-2b", {{"final_logit_softcapping", 0}}, "final_logit_softcapping: expected a number above 0, got 0"},
      {"gemma-2-2b", {{"query_pre_attn_scalar", -1}}, "query_pre_attn_scalar: expected a number above 0, got -1"},
  });
}

TEST(ModelConfig, NamesWrongRotaryEmbeddings) {
  const Json factors = {1.0, 2.0, 3.0};
  const Json scaling = {{"type", "longrope"}, {"short_factor", factors}, {"long_factor", Json(48, 1.0)}};
  expect_refusals({
      {"Llama-3.2-1B", {{"rope_theta", 0}}, "rope_theta: expected a number above 0, got 0"},
      {"Llama-3.2-1B",
       {{"rope_scaling", {{"rope_type", "linear"}, {"factor", -2}}}},
       "rope_scaling.factor: expected a number above 0, got -2"},
      {"Mistral-7B-v0.3",
       {{"rope_scaling", {{"type", "ntk"}, {"factor", 2}}}},
       "rope_scaling.type: expected default, linear, llama3, longrope, yarn or dynamic, got \"ntk\""},
      {"gpt-j-6b",
       {{"rotary_dim", 63}},
       "rotary_dim: expected a rotary embedding of an even number of each head's 256 numbers, not 63, got 63"},
      {"gpt-j-6b",
       {{"rotary_dim", 258}},
       "rotary_dim: expected a rotary embedding of an even number of each head's 256 numbers, not 258, got 258"},
      {"gpt-j-6b", {{"rotary_dim", nullptr}}, "rotary_dim: expected a positive integer or no such key, got null"},
      {"pythia-160m",
       {{"rotary_pct", 0.205}},
       "rotary_pct: expected a rotary embedding of an even number of each head's 64 numbers, not 13, got 0.205"},
      {"pythia-160m", {{"rotary_pct", 1.5}}, "rotary_pct: expected a number above 0, of at most 1, got 1.5"},
      {"Phi-4-mini-instruct",
       {{"partial_rotary_factor", -1}, {"rope_scaling", nullptr}},
       "partial_rotary_factor: expected a number above 0, of at most 1, got -1"},
      {"Phi-3-mini-128k-instruct",
       {{"rope_scaling", scaling}},
       "rope_scaling.short_factor: expected a list of 48 numbers above 0, got [1.0,2.0,3.0]"},
  });
}

TEST(ModelConfig, NamesWhatIsWrongWithYarn) {
  const auto yarn = [](const Json& more) {
    Json scaling = {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
    scaling.update(more);
    return Json{{"rope_scaling", scaling}};
  };
  const std::string known =
      "unknown key of yarn, which has factor, original_max_position_embeddings, attention_factor, beta_fast, "
      "beta_slow, mscale, mscale_all_dim, truncate, finetuned, rope_type, type, rope_theta, partial_rotary_factor: if "
      "it does not change the computation, take it out of config.json";
  const char* model = "Qwen2.5-7B-Instruct";
  expect_refusals({
      {model, yarn({{"alpha", 1000.0}}), "rope_scaling.alpha: " + known},
      {model, yarn({{"factor", 0.5}}), "rope_scaling.factor: expected a number of at least 1, got 0.5"},
      {model, yarn({{"factor", "4"}}), "rope_scaling.factor: expected a number, got \"4\""},
      {model, {{"rope_scaling", {{"type", "yarn"}}}}, "rope_scaling.factor: expected a number, got nothing"},
      {model, yarn({{"original_max_position_embeddings", 3.5}}),
       "rope_scaling.original_max_position_embeddings: expected a positive integer, got 3.5"},
      {model, yarn({{"attention_factor", 0}}), "rope_scaling.attention_factor: expected a number above 0, got 0"},
      {model, yarn({{"beta_fast", 0.5}}), "rope_scaling.beta_fast: expected at least beta_slow, 1, got 0.5"},
      {model, yarn({{"beta_slow", 33}}), "rope_scaling.beta_fast: expected at least beta_slow, 33, got nothing"},
      {model, yarn({{"beta_slow", -1}}), "rope_scaling.beta_slow: expected a number above 0, got -1"},
      {model, yarn({{"mscale", -1}}), "rope_scaling.mscale: expected a number of at least 0, got -1"},
      {model, yarn({{"truncate", 1}}), "rope_scaling.truncate: expected true or false, got 1"},
      {model, yarn({{"rope_theta", 1}}),
       "rope_scaling.rope_theta: expected a base above 1, here or beside it, for yarn, not 1, got 1"},
  });
}

TEST(ModelConfig, NamesWhatIsWrongWithDynamicScaling) {
  const Json scaling = {{"type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 1024}};
  expect_refusals({
      {"Llama-3.2-1B",
       {{"rope_scaling", scaling}},
       "rope_scaling.original_max_position_embeddings: expected max_position_embeddings, 131072, or no such key, got "
       "1024"},
      {"Llama-3.2-1B",
       {{"rope_scaling", {{"type", "dynamic"}, {"factor", 0}}}},
       "rope_scaling.factor: expected a number of at least 1, got 0"},
  });
}

TEST(ModelConfig, ReadsYarnAsPublishedModelsWriteIt) {
  const auto scaled = [](const char* model, const Json& scaling) {
    return read(published(model, {{"rope_scaling", scaling}}));
  };
  for (const char* key : {"type", "rope_type"}) {  // as Qwen2.5's and Qwen3's pages have it
    const ModelConfig qwen =
        scaled("Qwen2.5-7B-Instruct", {{"factor", 4.0}, {"original_max_position_embeddings", 32768}, {key, "yarn"}});
    EXPECT_EQ(qwen.rope.scaling, RopeConfig::Scaling::kYarn);
    EXPECT_EQ(qwen.rope.factor, 4.0);
    EXPECT_EQ(qwen.rope.original_max_positions, 32768);
    EXPECT_EQ(qwen.max_positions, 32768) << "max_position_embeddings, whatever the factor";
    EXPECT_NEAR(qwen.rope.amplitude, 0.1 * std::log(4.0) + 1, 1e-15);
    EXPECT_TRUE(qwen.rope.passes_at_whole_pairs);
  }
  const Json deepseek = {{"beta_fast", 16},         {"beta_slow", 2},    {"factor", 40},
                         {"mscale", 1.0},           {"type", "yarn"},    {"original_max_position_embeddings", 4096},
                         {"mscale_all_dim", 0.707}, {"truncate", false}, {"finetuned", true}};
  const RopeConfig rope = scaled("Llama-3.2-1B", deepseek).rope;
  EXPECT_EQ(rope.fast_turns, 16);
  EXPECT_EQ(rope.slow_turns, 2);
  EXPECT_FALSE(rope.passes_at_whole_pairs);
  EXPECT_NEAR(rope.amplitude, (0.1 * std::log(40.0) + 1) / (0.0707 * std::log(40.0) + 1), 1e-15);
  const RopeConfig by_lengths =
      scaled("Qwen3-8B", {{"rope_type", "yarn"}, {"factor", nullptr}, {"original_max_position_embeddings", 10240}})
          .rope;
  EXPECT_EQ(by_lengths.factor, 4.0) << "40960 positions by 10240";
}

TEST(ModelConfig, TurnsAsManyNumbersOfGptJsHeadsAsTransformersWhereNothingSaysHowMany) {
  Json silent = published("gpt-j-6b");
  silent.erase("rotary_dim");
  EXPECT_EQ(read(silent).rope.dim, 64);
  silent["n_head"] = 256;
  EXPECT_EQ(
      refusal(silent),
      "config.json:\n"
      "  rotary_dim: expected a rotary embedding of an even number of each head's 16 numbers, not 64, got nothing");
}

TEST(ModelConfig, NamesWrongWindows) {
  const Json types(25, "full_attention");
  const Json odd(26, "chunked_attention");
  expect_refusals({
      {"Mistral-7B-v0.1", {{"sliding_window", 0}}, "sliding_window: expected a positive integer, got 0"},
      {"gemma-2-2b",
       {{"layer_types", types}},
       "layer_types: expected one for each of the 26 layers, got " + types.dump()},
      {"gemma-2-2b",
       {{"layer_types", odd}},
       "layer_types: expected sliding_attention or full_attention, got " + odd.dump()},
      {"gemma-3-1b-pt", {{"sliding_window_pattern", 0}}, "sliding_window_pattern: expected a positive integer, got 0"},
  });
}

TEST(ModelConfig, RefusesWhatItDoesNotCompute) {
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention"}) {
    expect_refusals(
        {{"gpt2", {{key, true}}, std::string(key) + ": expected null, false or no such key, got true" + kUnsupported}});
    EXPECT_EQ(read(published("gpt2", {{key, false}})).n_layers, 12) << key;
  }
  expect_refusals({{"Llama-3.1-8B",
                    {{"sliding_window", 4096}},
                    std::string("sliding_window: expected null, false or no such key, got 4096") + kUnsupported}});
  const std::string quantised = refusal(published("Qwen2.5-7B", {{"quantization_config", {{"bits", 4}}}}));
  expect_refusals({
      {"Llama-3.1-8B",
       {{"attention_chunk_size", 8192}},
       std::string("attention_chunk_size: expected null, false or no such key, got 8192") + kUnsupported},
      {"Llama-3.1-8B",
       {{"per_layer_config", {{"3", {{"num_attention_heads", 8}}}}}},
       std::string(R"(per_layer_config: expected null, false or no such key, got {"3":{"num_attention_heads":8}})") +
           kUnsupported},
      {"Llama-3.1-8B",
       {{"is_causal", false}},
       std::string("is_causal: expected true or no such key, got false") + kUnsupported},
      {"gpt2",
       {{"pruned_heads", {{"0", {1, 2}}}}},
       std::string(R"(pruned_heads: expected null, false or no such key, got {"0":[1,2]})") + kUnsupported},
  });
  for (const char* key : {"residual_multiplier", "embedding_multiplier", "logits_scaling", "query_pre_attn_scalar",
                          "no_rope_layers", "mlp_only_layers"}) {
    const std::string said = refusal(published("Llama-3.1-8B", {{key, Json::array({2})}}));
    EXPECT_NE(said.find(std::string(key) + ": expected null, false or no such key, got [2]"), std::string::npos)
        << said;
    EXPECT_NE(said.find("ignore_config_keys"), std::string::npos) << said;
  }
  EXPECT_NE(quantised.find("quantization_config.quant_method: '' is not read"), std::string::npos) << quantised;
}

TEST(ModelConfig, SaysAllThatIsWrongAtOnce) {
  EXPECT_EQ(
      refusal(published("gpt-j-6b",
                        {{"rotary_dim", 7}, {"n_layer", 0}, {"layer_norm_epsilon", "small"}, {"is_causal", false}})),
      "config.json:\n"
      "  is_causal: expected true or no such key, got false: it changes the computation and is not supported\n"
      "  n_layer: expected a positive integer, got 0\n"
      "  layer_norm_epsilon: expected a number, got \"small\"\n"
      "  rotary_dim: expected a rotary embedding of an even number of each head's 256 numbers, not 7, got 7");
}

using Names = std::vector<std::string>;

/// Of a configuration that is read.
Names unread(const Json& config) {
  read(config);
  return unread_keys(config.dump(), {});
}

TEST(ModelConfig, NamesKeysThatTransformersIgnoresAndGoesOn) {
  const Json own = {{"_model_name_or_path", "x"}, {"unk_token_id", 0},
                    {"is_llama_config", true},    {"rope_interleaved", false},
                    {"sequence_parallel", true},  {"transformers.js_config", {{"dtype", "q4"}}},
                    {"max_sequence_length", 2048}};
  EXPECT_EQ(unread(published("Llama-3.2-1B", own)),
            (Names{"_model_name_or_path", "is_llama_config", "max_sequence_length", "sequence_parallel",
                   "transformers.js_config"}));
  EXPECT_EQ(unread(published("gpt2", {{"n_special", 0}, {"predict_special_tokens", true}})),
            Names{"predict_special_tokens"});
}

TEST(ModelConfig, SaysNothingOfKeysThatSayNothing) {
  const Json nothing = {{"mlp_only_layers", Json::array()},
                        {"shared_expert_intermediate_size", 0},
                        {"num_experts", 0},
                        {"sliding_window", nullptr},
                        {"use_sliding_window", false},
                        {"embedding_multiplier", nullptr},
                        {"some_setting", Json::object()},
                        {"other_setting", ""},
                        {"layer_types", Json(16, "full_attention")},
                        {"is_causal", true}};
  EXPECT_EQ(unread(published("Llama-3.2-1B", nothing)), Names{});
  const Json of_others = {{"torchscript", false},   {"tokenizer_class", "LlamaTokenizer"},
                          {"num_labels", 3},        {"top_k", 50},
                          {"temperature", 0.7},     {"num_beams", 4},
                          {"hidden_dropout", 0.1},  {"output_attentions", true},
                          {"label2id", {{"A", 0}}}, {"_attn_implementation", "sdpa"}};
  EXPECT_EQ(unread(published("Llama-3.2-1B", of_others)), Names{});
  EXPECT_NE(refusal(published("Llama-3.2-1B", {{"embedding_multiplier", 0}})), "nothing was refused")
      << "no factor is none at 0";
  Json mixed(15, "full_attention");
  mixed.push_back("sliding_attention");
  EXPECT_NE(refusal(published("Llama-3.2-1B", {{"layer_types", mixed}})), "nothing was refused");
}

TEST(ModelConfig, RefusesKeysThatCodeBesideTheFileMayRead) {
  const Json changes = {{"sparkles", 3}, {"auto_map", {{"AutoConfig", "configuration_x.XConfig"}}}};
  EXPECT_EQ(
      refusal(published("Llama-3.2-1B", changes)),
      "config.json:\n  sparkles: unknown key, which code that config.json names (auto_map) may read: if it does not "
      "change the computation, name it in ignore_config_keys");
}

TEST(ModelConfig, TakesTheFamilyOfTheModelType) {
  const auto family_of = [](const Json& changes) { return read(published("Llama-3.2-1B", changes)).family->name; };
  EXPECT_EQ(family_of({{"architectures", {"LLaMAForCausalLM"}}}), "Llama");
  EXPECT_EQ(family_of({{"architectures", {"LlamaForCausalLM", "LlamaModel"}}}), "Llama");
  EXPECT_EQ(family_of({{"architectures", {"MyLlamaForCausalLM"}}}), "Llama");
  EXPECT_EQ(family_of({{"architectures", {"MistralForCausalLM"}}}), "Llama") << "as transformers' AutoConfig";
  EXPECT_EQ(family_of({{"architectures", {"LLaMAForCausalLM"}}, {"model_type", nullptr}}), "Llama");
  const std::string own = refusal(published(
      "Llama-3.2-1B", {{"architectures", {"MyLlamaForCausalLM"}}, {"auto_map", {{"AutoModelForCausalLM", "m.My"}}}}));
  EXPECT_NE(own.find("unknown family 'MyLlamaForCausalLM'"), std::string::npos) << own;
  const std::string other =
      refusal(published("Llama-3.2-1B", {{"model_type", "x"}, {"architectures", {"XForCausalLM"}}}));
  EXPECT_NE(other.find("unknown family 'XForCausalLM'"), std::string::npos) << other;
}

TEST(ModelConfig, ReadsTypesByTheNamesThatFilesHave) {
  const auto type_of = [](const char* name) { return read(published("Llama-3.2-1B", {{"torch_dtype", name}})).dtype; };
  EXPECT_EQ(type_of("torch.bfloat16"), DType::kBF16);
  EXPECT_EQ(type_of("half"), DType::kF16);
  EXPECT_EQ(type_of("float"), DType::kF32);
  EXPECT_EQ(type_of("auto"), DType::kF32) << "the checkpoint's, which is not there";
}

TEST(ModelConfig, SaysThatMlxHasPackedTheWeights) {
  const std::string said = refusal(published("Qwen3-8B", {{"quantization", {{"group_size", 64}, {"bits", 4}}}}));
  EXPECT_NE(said.find("quantization: MLX has packed the weights (4 bits in groups of 64)"), std::string::npos) << said;
  EXPECT_EQ(said.find("ignore_config_keys"), std::string::npos) << said;
}

TEST(ModelConfig, TiesEmbeddingsAsTransformersDoesWhereTwoConfigurationsDiffer) {
  const auto ties = [](const char* model, const Json& above, const Json& below) {
    Json config = published(model);
    config["tie_word_embeddings"] = above;
    config["text_config"]["tie_word_embeddings"] = below;
    return read(config).tied_embeddings;
  };
  // Gemma3ForConditionalGeneration has the configuration above
  EXPECT_FALSE(ties("gemma-3-4b-pt", false, true));
  EXPECT_TRUE(ties("gemma-3-4b-pt", true, false));
  EXPECT_TRUE(ties("gemma-3-4b-pt", nullptr, false));
}

TEST(ModelConfig, ReadsWhatEachFamilySaysInItsOwnWay) {
  const ModelConfig gptj = read(published("gpt-j-6b"));
  EXPECT_EQ(gptj.order, BlockOrder::kParallel);
  EXPECT_EQ(gptj.d_ffn, 4 * 4096);
  EXPECT_EQ(gptj.rope.dim, 64);
  EXPECT_EQ(gptj.rope.pairs, RopeConfig::Pairs::kAdjacent);
  EXPECT_TRUE(gptj.head_bias);
  const ModelConfig pythia = read(published("pythia-6.9b"));
  EXPECT_EQ(pythia.rope.dim, 32);
  EXPECT_EQ(pythia.dtype, DType::kF16);
  const ModelConfig phi = read(published("Phi-4-mini-instruct"));
  EXPECT_EQ(phi.rope.dim, 96);
  EXPECT_EQ(phi.rope.long_factors.size(), 48u);
  EXPECT_EQ(phi.rope.original_max_positions, 4096);
  EXPECT_NEAR(phi.rope.amplitude, std::sqrt(1 + std::log(32.0) / std::log(4096.0)), 1e-15);
  const ModelConfig gemma = read(published("gemma-3-27b-it"));
  EXPECT_DOUBLE_EQ(gemma.attention_scale, 1 / std::sqrt(168.0));
  EXPECT_EQ(gemma.rope.factor, 8.0);
  ASSERT_TRUE(gemma.window_rope.has_value());
  EXPECT_EQ(gemma.window_rope->theta, 1e4);
  EXPECT_EQ(gemma.window_rope->scaling, RopeConfig::Scaling::kNone);
  EXPECT_TRUE(gemma.has_window(4));
  EXPECT_FALSE(gemma.has_window(5));
  const ModelConfig qwen = read(published("Qwen2.5-7B", {{"use_sliding_window", true}, {"max_window_layers", 20}}));
  EXPECT_FALSE(qwen.has_window(19));
  EXPECT_TRUE(qwen.has_window(20));
}

}  // namespace
}  // namespace lancet
