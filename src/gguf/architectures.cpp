#include "architectures.h"

#include <algorithm>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr GgufTensorRow kOutside[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};

constexpr GgufTensorRow kAttention[] = {{"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
                                        {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
                                        {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
                                        {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
                                        {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
                                        {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
                                        {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"}};

constexpr GgufTensorRow kMlp[] = {{"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
                                  {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
                                  {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
                                  {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"}};

/// Norms before and after attention and MLP.
constexpr GgufTensorRow kGemmaNorms[] = {{"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
                                         {"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"},
                                         {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"}};

/// Norms after them alone.
constexpr GgufTensorRow kPostNorms[] = {{"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
                                        {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"}};

constexpr GgufTensorRow kGlmNorms[] = {{"blk.{}.post_attention_norm", "model.layers.{}.post_self_attn_layernorm"},
                                       {"blk.{}.post_ffw_norm", "model.layers.{}.post_mlp_layernorm"},
                                       {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"}};

constexpr GgufTensorRow kFused[] = {{"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
                                    {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"}};

constexpr GgufTensorRow kTwoStepMlp[] = {{"blk.{}.ffn_up", "model.layers.{}.mlp.c_fc"},
                                         {"blk.{}.ffn_down", "model.layers.{}.mlp.c_proj"}};

constexpr GgufTensorRow kQwenExperts[] = {{"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"},
                                          {"blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj"},
                                          {"blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj"},
                                          {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj"},
                                          {"blk.{}.ffn_gate_inp_shexp", "model.layers.{}.mlp.shared_expert_gate"},
                                          {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_expert.gate_proj"},
                                          {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_expert.up_proj"},
                                          {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_expert.down_proj"}};

constexpr GgufTensorRow kMixtralExperts[] = {
    {"blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"},
    {"blk.{}.ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.{}.w1"},
    {"blk.{}.ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.{}.w3"},
    {"blk.{}.ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.{}.w2"}};

constexpr GgufKeyRow kSizes[] = {{"block_count", "num_hidden_layers"},
                                 {"embedding_length", "hidden_size"},
                                 {"feed_forward_length", "intermediate_size"},
                                 {"attention.head_count", "num_attention_heads"},
                                 {"attention.head_count_kv", "num_key_value_heads"},
                                 {"context_length", "max_position_embeddings"}};
constexpr GgufKeyRow kHeadSize[] = {{"attention.key_length", "head_dim"}};
constexpr GgufKeyRow kWindow[] = {{"attention.key_length", "head_dim"}, {"attention.sliding_window", "sliding_window"}};
constexpr GgufKeyRow kMoeKeys[] = {{"expert_count", "num_experts"},
                                   {"expert_used_count", "num_experts_per_tok"},
                                   {"expert_feed_forward_length", "moe_intermediate_size"},
                                   {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
                                   {"attention.key_length", "head_dim"}};
constexpr GgufKeyRow kMixtralKeys[] = {{"expert_count", "num_local_experts"},
                                       {"expert_used_count", "num_experts_per_tok"}};
constexpr GgufKeyRow kGraniteKeys[] = {{"embedding_scale", "embedding_multiplier", GgufKeyKind::kNumber},
                                       {"residual_scale", "residual_multiplier", GgufKeyKind::kNumber},
                                       {"attention.scale", "attention_multiplier", GgufKeyKind::kNumber},
                                       {"logit_scale", "logits_scaling", GgufKeyKind::kNumber}};
constexpr GgufKeyRow kGemmaKeys[] = {{"attention.sliding_window", "sliding_window"},
                                     {"attn_logit_softcapping", "attn_logit_softcapping", GgufKeyKind::kNumber},
                                     {"final_logit_softcapping", "final_logit_softcapping", GgufKeyKind::kNumber}};
constexpr GgufKeyRow kCohereKeys[] = {{"logit_scale", "logit_scale", GgufKeyKind::kNumber}};
constexpr GgufKeyRow kCohere2Keys[] = {{"logit_scale", "logit_scale", GgufKeyKind::kNumber},
                                       {"attention.sliding_window", "sliding_window"}};

bool has_bias(const GgufFile& file, std::string_view tensor) {
  return file.find_tensor(cat("blk.0.", tensor, ".bias")) != nullptr;
}

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

void complete_partial_rotary(const GgufFile& file, OrderedJson& config) {
  const auto turned = file.whole(own_key(file, "rope.dimension_count"));
  const int64_t heads = std::max<int64_t>(1, config.value("num_attention_heads", int64_t{1}));
  const int64_t size = config.value("head_dim", config.value("hidden_size", int64_t{0}) / heads);
  if (turned && size > 0 && *turned != size)
    config["partial_rotary_factor"] = static_cast<double>(*turned) / static_cast<double>(size);
}

void complete_phi3(const GgufFile& file, OrderedJson& config) {
  for (const char* tensor : {"rope_factors_long.weight", "rope_factors_short.weight"})
    if (file.find_tensor(tensor) != nullptr)
      throw CheckpointError(cat(file.path().string(), ": expected a Phi-3 without LongRoPE, got the tensor ", tensor,
                                ", which lancet does not read: take the model's safetensors"));
  config["hidden_act"] = "silu";
  complete_partial_rotary(file, config);
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
  config["use_parallel_residual"] = file.flag(own_key(file, "use_parallel_residual")).value_or(false);
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
  if (config.contains("sliding_window"))
    config["sliding_window_pattern"] = 4;
  else
    config["sliding_window"] = nullptr;
}

constexpr GgufArchitecture kMixtral{.name = "llama",
                                    .model_class = "MixtralForCausalLM",
                                    .model_type = "mixtral",
                                    .tensors = {kOutside, kAttention, kMixtralExperts, kMlp},
                                    .keys = {kSizes, kHeadSize, kMixtralKeys},
                                    .complete = complete_silu,
                                    .has_turned_heads = true};

constexpr GgufArchitecture kGgufArchitectures[] = {
    {.name = "llama",
     .model_class = "LlamaForCausalLM",
     .model_type = "llama",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .complete = complete_llama,
     .has_turned_heads = true},
    {.name = "granite",
     .model_class = "GraniteForCausalLM",
     .model_type = "granite",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kGraniteKeys},
     .complete = complete_llama,
     .has_turned_heads = true},
    {.name = "smollm3",
     .model_class = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes},
     .complete = complete_llama,
     .has_turned_heads = true},
    {.name = "qwen2",
     .model_class = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes},
     .complete = complete_silu},
    {.name = "qwen3",
     .model_class = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .complete = complete_qwen3},
    {.name = "qwen2moe",
     .model_class = "Qwen2MoeForCausalLM",
     .model_type = "qwen2_moe",
     .tensors = {kOutside, kAttention, kQwenExperts, kMlp},
     .keys = {kSizes, kMoeKeys},
     .complete = complete_qwen2_moe},
    {.name = "qwen3moe",
     .model_class = "Qwen3MoeForCausalLM",
     .model_type = "qwen3_moe",
     .tensors = {kOutside, kAttention, kQwenExperts, kMlp},
     .keys = {kSizes, kMoeKeys},
     .complete = complete_qwen3_moe},
    {.name = "gemma",
     .model_class = "GemmaForCausalLM",
     .model_type = "gemma",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .complete = complete_gemma,
     .has_norms_plus_one = true},
    {.name = "gemma2",
     .model_class = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .tensors = {kOutside, kGemmaNorms, kAttention, kMlp},
     .keys = {kSizes, kHeadSize, kGemmaKeys},
     .complete = complete_gemma2,
     .has_norms_plus_one = true},
    {.name = "gemma3",
     .model_class = "Gemma3ForCausalLM",
     .model_type = "gemma3_text",
     .tensors = {kOutside, kGemmaNorms, kAttention, kMlp},
     .keys = {kSizes, kHeadSize, kGemmaKeys},
     .complete = complete_gemma3,
     .has_norms_plus_one = true},
    {.name = "olmo2",
     .model_class = "Olmo2ForCausalLM",
     .model_type = "olmo2",
     .tensors = {kOutside, kPostNorms, kAttention, kMlp},
     .keys = {kSizes},
     .complete = complete_silu},
    {.name = "phi3",
     .model_class = "Phi3ForCausalLM",
     .model_type = "phi3",
     .tensors = {kOutside, kFused, kAttention, kMlp},
     .keys = {kSizes, kWindow},
     .complete = complete_phi3},
    {.name = "glm4",
     .model_class = "Glm4ForCausalLM",
     .model_type = "glm4",
     .tensors = {kOutside, kGlmNorms, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .complete = complete_glm4},
    {.name = "exaone4",
     .model_class = "Exaone4ForCausalLM",
     .model_type = "exaone4",
     .tensors = {kOutside, kPostNorms, kAttention, kMlp},
     .keys = {kSizes, kWindow},
     .complete = complete_exaone4},
    {.name = "command-r",
     .model_class = "CohereForCausalLM",
     .model_type = "cohere",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kCohereKeys},
     .norm_key = "layer_norm_eps",
     .complete = complete_cohere},
    {.name = "cohere2",
     .model_class = "Cohere2ForCausalLM",
     .model_type = "cohere2",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize, kCohere2Keys},
     .norm_key = "layer_norm_eps",
     .complete = complete_cohere2},
    {.name = "starcoder2",
     .model_class = "Starcoder2ForCausalLM",
     .model_type = "starcoder2",
     .tensors = {kOutside, kTwoStepMlp, kAttention, kMlp},
     .keys = {kSizes, kWindow},
     .norm_key = "norm_epsilon",
     .complete = complete_starcoder2},
    {.name = "stablelm",
     .model_class = "StableLmForCausalLM",
     .model_type = "stablelm",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes},
     .norm_key = "layer_norm_eps",
     .complete = complete_stablelm},
    {.name = "nemotron",
     .model_class = "NemotronForCausalLM",
     .model_type = "nemotron",
     .tensors = {kOutside, kAttention, kMlp},
     .keys = {kSizes, kHeadSize},
     .norm_key = "norm_eps",
     .complete = complete_nemotron,
     .has_norms_plus_one = true},
};

}  // namespace

const GgufArchitecture& architecture_of(const GgufFile& file) {
  constexpr std::string_view kKey = "general.architecture";
  const std::optional<std::string> name = file.text(kKey);
  if (!name) file.refuse(kKey, "the model's architecture", "none: the file holds no model");
  if (*name == "clip")
    file.refuse(kKey, "a language model",
                "clip, the part of a model that sees images: name the file of the language model");
  if (*name == "llama" && file.number("llama.expert_count").value_or(0) > 0) return kMixtral;
  const auto* found = std::ranges::find(kGgufArchitectures, *name, &GgufArchitecture::name);
  if (found != std::end(kGgufArchitectures)) return *found;
  std::vector<std::string> names;
  for (const GgufArchitecture& known : kGgufArchitectures) names.emplace_back(known.name);
  file.refuse(kKey, cat("an architecture that lancet reads from a GGUF file (", join(names), ")"),
              cat("'", printable(*name), "': take the model's safetensors"));
}

std::string own_key(const GgufFile& file, std::string_view key) {
  return cat(file.text("general.architecture").value_or(""), ".", key);
}

}  // namespace lancet
