// ERNIE 4.5 (Baidu 2025): Llama's block with a rotary embedding of adjacent pairs. It is dense, or has experts that are
// chosen by scores with a bias, and an MLP beside them.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/rows.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr WeightRow kBias[] = {
    {kRouterBias, "model.layers.{}.mlp.moe_statics.e_score_correction_bias", Layout::kOneRow}};

void read_ernie4_5(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_kv_heads = 2, .default_head_dim = 128}, /*default_eps=*/1e-5,
                    /*default_theta=*/5e5);
  config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = keys.flag("use_bias");
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
}

/// Every moe_layer_interval-th layer from the first to the last given one has experts; -1 means the model's last layer.
std::vector<bool> layers_with_experts_of_ernie(ConfigReader& keys, int64_t n_layers) {
  const auto first = static_cast<int64_t>(keys.number("moe_layer_start_index", 1));
  const auto last = static_cast<int64_t>(keys.number("moe_layer_end_index", -1));
  const int64_t interval = keys.positive("moe_layer_interval", 1);
  std::vector<bool> layers;
  for (int64_t layer = 0; layer < n_layers; ++layer)
    layers.push_back((layer + 1) % interval == 0 && layer >= first && (last == -1 || layer <= last));
  return layers;
}

void read_ernie4_5_moe(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_kv_heads = 4}, /*default_eps=*/1e-5, /*default_theta=*/5e5);
  config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
  if (keys.flag("use_bias")) keys.problem("use_bias", "false: experts have no biases");
  ExpertsConfig& experts = config.experts;
  experts.count = keys.size("moe_num_experts", kMostExperts, 64);
  experts.chosen = keys.size("moe_k", kMostExperts, 6);
  if (experts.chosen > experts.count) keys.problem("moe_k", cat("at most moe_num_experts, ", experts.count));
  experts.d_ffn = keys.size("moe_intermediate_size", kMostWide, 1536);
  experts.sums_to_one = experts.choice_bias = true;
  experts.least_sum = keys.number("moe_norm_min", 1e-12);
  experts.shared = experts.d_ffn * static_cast<int64_t>(keys.at_least("moe_num_shared_experts", 0, 2));
  experts.layers = layers_with_experts_of_ernie(keys, config.n_layers);
}

}  // namespace

constinit const Family ernie4_5_moe = {
    .name = "ERNIE 4.5 MoE",
    .architectures = {"Ernie4_5_MoeForCausalLM"},
    .model_types = {"ernie4_5_moe"},
    .understood_keys =
        llama_keys({"use_bias", "moe_num_experts", "moe_k", "moe_intermediate_size", "moe_norm_min",
                    "moe_num_shared_experts", "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval"}),
    .harmless_keys = {"router_aux_loss_coef", "output_router_logits", "moe_capacity", "moe_gate", "moe_use_aux_free",
                      "num_nextn_predict_layers", "use_rmsnorm", "compression_ratio", "use_flash_attention",
                      "weight_share_add_bias"},
    .weights = rows_of({llama_rows(), kQwenExperts, kBias, kSharedExperts}),
    .ignored_tensors = {"model.mtp_*", "mtp*"},
    .read = read_ernie4_5_moe};

constinit const Family ernie4_5 = {
    .name = "ERNIE 4.5",
    .architectures = {"Ernie4_5ForCausalLM"},
    .model_types = {"ernie4_5"},
    .understood_keys = llama_keys({"use_bias"}),
    .harmless_keys = {"compression_ratio", "use_flash_attention", "weight_share_add_bias"},
    .weights = llama_rows(),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_ernie4_5};

}  // namespace lancet
