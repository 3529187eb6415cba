#include "complete_config.h"

#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/gguf/tiled_heads.h"
#include "small_numbers.h"

namespace lancet {
namespace {

bool has_bias(const GgufFile& file, std::string_view tensor) {
  return file.find_tensor(cat("blk.0.", tensor, ".bias")) != nullptr;
}

void complete_partial_rotary(const GgufFile& file, OrderedJson& config) {
  const auto turned = file.whole(own_key(file, "rope.dimension_count"));
  const int64_t size = head_size(config);
  if (turned && size > 0 && *turned != size)
    config["partial_rotary_factor"] = static_cast<double>(*turned) / static_cast<double>(size);
}

}  // namespace

void complete_llama(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["attention_bias"] = has_bias(file, "attn_output");
  config["mlp_bias"] = has_bias(file, "ffn_down");
}

void complete_silu(const GgufFile&, OrderedJson& config) { config["hidden_act"] = "silu"; }

void complete_qwen3(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["attention_bias"] = has_bias(file, "attn_q");
}

void complete_qwen2_moe(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["qkv_bias"] = has_bias(file, "attn_q");
  config["norm_topk_prob"] = false;
}

void complete_qwen3_moe(const GgufFile& file, OrderedJson& config) {
  complete_qwen3(file, config);
  config["norm_topk_prob"] = true;
}

void complete_gemma(const GgufFile&, OrderedJson& config) {
  config["hidden_act"] = config["hidden_activation"] = "gelu_pytorch_tanh";
}

/// llama.cpp has no key for what scores are divided by: it tells the models of 27B by their layers.
void complete_gemma2(const GgufFile&, OrderedJson& config) {
  config["hidden_activation"] = "gelu_pytorch_tanh";
  const int64_t layers = config.value("num_hidden_layers", int64_t{0});
  const bool is_largest = layers == 46 || layers == 62;
  const int64_t heads = std::max<int64_t>(1, config.value("num_attention_heads", int64_t{1}));
  const int64_t size =
      is_largest ? config.value("hidden_size", int64_t{0}) / heads : config.value("head_dim", int64_t{256});
  config["query_pre_attn_scalar"] = size;
  config["attn_logit_softcapping"] = config.value("attn_logit_softcapping", OrderedJson());
  config["final_logit_softcapping"] = config.value("final_logit_softcapping", OrderedJson());
}

void complete_gemma3(const GgufFile& file, OrderedJson& config) {
  complete_gemma2(file, config);
  config["sliding_window_pattern"] = 6;
  const double local = file.number(own_key(file, "rope.freq_base_swa")).value_or(1e4);
  OrderedJson full{{"rope_type", "default"}, {"rope_theta", config.value("rope_theta", 1e6)}};
  if (config.contains("rope_scaling")) {
    full["rope_type"] = config["rope_scaling"]["rope_type"];
    full["factor"] = config["rope_scaling"]["factor"];
  }
  config["rope_parameters"] = {{"full_attention", std::move(full)},
                               {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", local}}}};
  config.erase("rope_scaling");
  config.erase("rope_theta");
}

void complete_phi3(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  complete_partial_rotary(file, config);
  const GgufTensor* short_factors = file.find_tensor("rope_factors_short.weight");
  const GgufTensor* long_factors = file.find_tensor("rope_factors_long.weight");
  if (short_factors == nullptr && long_factors == nullptr) return;
  const std::string key = own_key(file, "rope.scaling.original_context_length");
  const std::optional<int64_t> original = file.whole(key);
  if (short_factors == nullptr || long_factors == nullptr || !original)
    file.refuse(key, "a number, and both tensors rope_factors_long and rope_factors_short", "a part of them");
  config["original_max_position_embeddings"] = *original;
  config["rope_scaling"] = {{"rope_type", "longrope"},
                            {"short_factor", small_numbers(file, *short_factors)},
                            {"long_factor", small_numbers(file, *long_factors)}};
  if (const std::optional<double> growth = file.number(own_key(file, "rope.scaling.attn_factor")))
    config["rope_scaling"]["attention_factor"] = *growth;
}

void complete_glm4(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["attention_bias"] = has_bias(file, "attn_q");
  complete_partial_rotary(file, config);
}

void complete_starcoder2(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "gelu_pytorch_tanh";
  config["use_bias"] = has_bias(file, "attn_q");
}

void complete_stablelm(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["use_qkv_bias"] = has_bias(file, "attn_q");
  complete_partial_rotary(file, config);
}

void complete_nemotron(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "relu2";
  config["attention_bias"] = has_bias(file, "attn_q");
  config["mlp_bias"] = has_bias(file, "ffn_down");
  complete_partial_rotary(file, config);
}

void complete_cohere(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["use_qk_norm"] = file.find_tensor("blk.0.attn_q_norm.weight") != nullptr;
  config["attention_bias"] = has_bias(file, "attn_q");
}

void complete_cohere2(const GgufFile&, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["sliding_window_pattern"] = 4;
}

void complete_exaone4(const GgufFile&, OrderedJson& config) {
  config["hidden_act"] = "silu";
  if (config.contains("sliding_window")) {
    config["sliding_window_pattern"] = 4;
    return;
  }
  config["sliding_window"] = nullptr;
  // transformers divides by the pattern, which is then 0, where this list is absent
  constexpr int64_t kMostLayers = 4096;  // a damaged file's number is refused later
  for (int64_t layer = 0; layer < std::min(kMostLayers, config.value("num_hidden_layers", int64_t{0})); ++layer)
    config["layer_types"].push_back("full_attention");
}

void complete_phi2(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "gelu_new";
  config["partial_rotary_factor"] = 1.0;  // where the file says nothing; the class has another default
  complete_partial_rotary(file, config);
}

/// The class has a table of positions in place of a rotary embedding.
void complete_gpt2(const GgufFile&, OrderedJson& config) {
  config["activation_function"] = "gelu_new";
  config.erase("rope_theta");
}

void complete_gpt_neox(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "gelu";
  config["attention_bias"] = has_bias(file, "attn_qkv");
  config["rotary_emb_base"] = config["rope_theta"];
  config.erase("rope_theta");
  const int64_t size = std::max<int64_t>(1, head_size(config));
  const int64_t turned = file.whole(own_key(file, "rope.dimension_count")).value_or(size);
  config["rotary_pct"] = static_cast<double>(turned) / static_cast<double>(size);
}

void complete_gptj(const GgufFile& file, OrderedJson& config) {
  config["activation_function"] = "gelu_new";
  if (!config.contains("rotary_dim")) config["rotary_dim"] = head_size(config);
  if (config.value("rope_theta", 0.0) != 1e4 || config.contains("rope_scaling"))
    file.refuse(own_key(file, "rope.freq_base"), "10000 and no scaling, as the class has them", "others");
  config.erase("rope_theta");
}

void complete_falcon(const GgufFile& file, OrderedJson& config) {
  config["activation"] = "gelu";
  config["alibi"] = false;
  config["bias"] = has_bias(file, "attn_qkv");
  config["parallel_attn"] = true;
  const auto heads = config.value("num_kv_heads", config.value("num_attention_heads", int64_t{1}));
  const bool has_two_norms = file.find_tensor("blk.0.attn_norm_2.weight") != nullptr;
  config["num_kv_heads"] = heads;
  config["multi_query"] = heads == 1;
  config["new_decoder_architecture"] = has_two_norms || heads != 1;
  config["num_ln_in_parallel_attn"] = has_two_norms ? 2 : 1;
}

void complete_gpt_oss(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["attention_bias"] = has_bias(file, "attn_q");
  if (config.contains("rope_scaling"))
    config["rope_scaling"]["truncate"] = false;
  else
    config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", config["rope_theta"]}};
}

/// Where several heads of values share one of keys, the file has the first value head of each key head, then the second
/// of each, and so on. Columns of blocks cannot be moved, so the model computes with this order.
void complete_qwen35(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["partial_rotary_factor"] = 1.0;  // where the file says nothing; the class has another default
  complete_partial_rotary(file, config);
  const auto heads = config.value("linear_num_value_heads", int64_t{0});
  const auto size = config.value("linear_value_size", int64_t{0});
  if (heads < 1 || size % heads != 0)
    file.refuse(own_key(file, "ssm.inner_size"), "a multiple of ssm.time_step_rank, a number above 0",
                cat(size, " and ", heads));
  config["linear_value_head_dim"] = size / heads;
  config.erase("linear_value_size");
  if (heads != config.value("linear_num_key_heads", heads)) config[kTiledValueHeads] = true;
}

/// Layers without attention have no heads of keys.
void complete_lfm2(const GgufFile& file, OrderedJson& config) {
  const std::string key = own_key(file, "attention.head_count_kv");
  const std::vector<double> heads = file.numbers(key);
  const auto layers = config.value("num_hidden_layers", int64_t{0});
  if (std::ssize(heads) != layers) file.refuse(key, cat("a number for each of ", layers, " layers"), cat(heads.size()));
  OrderedJson types = OrderedJson::array();
  double most = 0;
  for (const double number : heads) {
    types.push_back(number == 0 ? "conv" : "full_attention");
    if (number != 0 && most != 0 && number != most)
      file.refuse(key, "one number for all layers with attention", "several");
    most = std::max(most, number);
  }
  config["layer_types"] = std::move(types);
  config["num_key_value_heads"] = static_cast<int64_t>(most);
  config["block_auto_adjust_ff_dim"] = false;  // the file has the size itself
}

}  // namespace lancet
