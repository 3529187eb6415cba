// Granite (IBM 2024): Llama's block with four multipliers: for embeddings, for scores, for the outputs of blocks, and
// for logits. Some models have experts instead of MLPs, all experts of a layer in one tensor. Granite 4 (2025) has
// Mamba-2 mixers in most layers, and an MLP beside the experts, or only the MLP.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/hybrid_rows.h"
#include "families/rows.h"
#include "families/state_space_rows.h"

namespace lancet {
namespace {

constexpr auto kOfExperts = Layout::kByExpert;
constexpr WeightRow kGraniteExperts[] = {{kRouter, "model.layers.{}.block_sparse_moe.router.layer.weight"},
                                         {kGate, "model.layers.{}.block_sparse_moe.input_linear.weight", kOfExperts},
                                         {kUp, "model.layers.{}.block_sparse_moe.input_linear.weight", kOfExperts},
                                         {kDown, "model.layers.{}.block_sparse_moe.output_linear.weight", kOfExperts},
                                         // the form that llm-compressor writes for quantised models, and that vLLM and
                                         // SGLang read
                                         {kGate, "model.layers.{}.block_sparse_moe.experts.{}.gate_proj.weight"},
                                         {kUp, "model.layers.{}.block_sparse_moe.experts.{}.up_proj.weight"},
                                         {kDown, "model.layers.{}.block_sparse_moe.experts.{}.down_proj.weight"}};

constexpr WeightRow kSharedMlp[] = {{kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                    {kGate, "model.layers.{}.shared_mlp.input_linear.weight"},
                                    {kUp, "model.layers.{}.shared_mlp.input_linear.weight"},
                                    {kDown, "model.layers.{}.shared_mlp.output_linear.weight"},
                                    {kSharedGate, "model.layers.{}.shared_mlp.input_linear.weight"},
                                    {kSharedUp, "model.layers.{}.shared_mlp.input_linear.weight"},
                                    {kSharedDown, "model.layers.{}.shared_mlp.output_linear.weight"}};

void read_granite(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
  config.embedding_scale = keys.above_zero("embedding_multiplier", 1);
  config.attention_scale = keys.above_zero("attention_multiplier", 1);
  config.attention_out_scale = config.mlp_out_scale = keys.above_zero("residual_multiplier", 1);
  config.logits_scale = 1 / keys.above_zero("logits_scaling", 1);
}

void read_granite_moe(ConfigReader& keys, ModelConfig& config) {
  read_granite(keys, config);
  config.experts = read_experts(keys, "num_local_experts", {.count = 8, .chosen = 2});
  config.experts.d_ffn = config.d_ffn;
  config.experts.sums_to_one = config.experts.in_one_tensor = true;
  config.experts.layers.assign(static_cast<size_t>(config.n_layers), true);
}

/// intermediate_size is that of an expert, shared_intermediate_size that of the MLP through which all tokens go.
void read_granite_hybrid(ConfigReader& keys, ModelConfig& config) {
  read_granite(keys, config);
  const int64_t d_expert = config.d_ffn;
  config.d_ffn = keys.size("shared_intermediate_size", kMostWide, 1024);
  const std::string positions = keys.text("position_embedding_type", "nope");
  if (positions == "nope") config.rotary_layers.assign(static_cast<size_t>(config.n_layers), false);
  if (positions != "nope" && positions != "rope") keys.problem("position_embedding_type", "nope or rope");
  read_state_space(keys, config, expanded_size(keys, config));
  config.recurrence.norm = MixerNorm::kGateFirst;
  config.recurrence.layers =
      layers_with_mixer(keys, config.n_layers, {"linear_attention", "mamba"},
                        [&](ConfigReader&) { return std::vector<bool>(static_cast<size_t>(config.n_layers), true); });
  if (keys.number("num_local_experts", 8) == 0) return;
  config.experts = read_experts(keys, "num_local_experts", {.count = 8, .chosen = 2});
  config.experts.d_ffn = d_expert;
  config.experts.shared = config.d_ffn;
  config.experts.sums_to_one = config.experts.in_one_tensor = true;
  config.experts.layers.assign(static_cast<size_t>(config.n_layers), true);
}

}  // namespace

constinit const Family granite_hybrid = {
    .name = "Granite 4",
    .architectures = {"GraniteMoeHybridForCausalLM"},
    .model_types = {"granitemoehybrid"},
    .understood_keys = state_space_keys({"embedding_multiplier", "attention_multiplier", "residual_multiplier",
                                         "logits_scaling", "num_local_experts", "num_experts_per_tok",
                                         "shared_intermediate_size", "position_embedding_type"}),
    .harmless_keys = kStateSpaceHarmlessKeys,
    .weights = rows_of({kLlamaOutside, kLlamaAttentionNorm, kLlamaAttention, kStateSpace, kSharedMlp, kGraniteExperts}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_granite_hybrid};

constinit const Family granite_moe = {
    .name = "Granite-MoE",
    .architectures = {"GraniteMoeForCausalLM"},
    .model_types = {"granitemoe"},
    .understood_keys =
        llama_keys({"attention_bias", "embedding_multiplier", "attention_multiplier", "residual_multiplier",
                    "logits_scaling", "num_local_experts", "num_experts_per_tok"}),
    .harmless_keys = {"router_aux_loss_coef", "output_router_logits"},
    .weights = rows_of({llama_rows(), kGraniteExperts}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_granite_moe};

constinit const Family granite = {
    .name = "Granite",
    .architectures = {"GraniteForCausalLM"},
    .model_types = {"granite"},
    .understood_keys = llama_keys({"attention_bias", "mlp_bias", "embedding_multiplier", "attention_multiplier",
                                   "residual_multiplier", "logits_scaling"}),
    .weights = llama_rows(),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_granite};

}  // namespace lancet
