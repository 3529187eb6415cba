// Granite (IBM 2024): Llama's block with four multipliers: of embeddings, scores, what blocks add, and logits. Also
// with experts in the place of MLPs, all of a layer in one tensor.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr auto kOfExperts = Layout::kByExpert;
constexpr WeightRow kGraniteExperts[] = {{kRouter, "model.layers.{}.block_sparse_moe.router.layer.weight"},
                                         {kGate, "model.layers.{}.block_sparse_moe.input_linear.weight", kOfExperts},
                                         {kUp, "model.layers.{}.block_sparse_moe.input_linear.weight", kOfExperts},
                                         {kDown, "model.layers.{}.block_sparse_moe.output_linear.weight", kOfExperts}};

void read_granite(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.mlp_bias = keys.flag("mlp_bias");
  config.embedding_scale = keys.above_zero("embedding_multiplier", 1);
  config.attention_scale = keys.above_zero("attention_multiplier", 1);
  config.residual_scale = keys.above_zero("residual_multiplier", 1);
  config.logits_scale = 1 / keys.above_zero("logits_scaling", 1);
}

void read_granite_moe(ConfigReader& keys, ModelConfig& config) {
  read_granite(keys, config);
  config.experts = read_experts(keys, "num_local_experts", {.count = 8, .chosen = 2});
  config.experts.d_ffn = config.d_ffn;
  config.experts.sums_to_one = config.experts.in_one_tensor = true;
  config.experts.layers.assign(static_cast<size_t>(config.n_layers), true);
}

}  // namespace

Family granite_moe() {
  return {.name = "Granite-MoE",
          .architectures = {"GraniteMoeForCausalLM"},
          .model_types = {"granitemoe"},
          .understood_keys =
              llama_keys({"attention_bias", "embedding_multiplier", "attention_multiplier", "residual_multiplier",
                          "logits_scaling", "num_local_experts", "num_experts_per_tok"}),
          .harmless_keys = {"router_aux_loss_coef", "output_router_logits"},
          .weights = rows_of({llama_rows(), kGraniteExperts}),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_granite_moe};
}

Family granite() {
  return {.name = "Granite",
          .architectures = {"GraniteForCausalLM"},
          .model_types = {"granite"},
          .understood_keys = llama_keys({"attention_bias", "mlp_bias", "embedding_multiplier", "attention_multiplier",
                                         "residual_multiplier", "logits_scaling"}),
          .weights = llama_rows(),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_granite};
}

}  // namespace lancet
