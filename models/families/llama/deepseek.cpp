// DeepSeek-V2 (arXiv 2405.04434) and V3 (arXiv 2412.19437): latent attention, experts in groups, and an MLP beside
// them. GLM-4.7-Flash has V3's block.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/latent_rows.h"
#include "families/rows.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Checks keys that have the same value in all files of these families.
void check_fixed(ConfigReader& keys, const std::string& score) {
  if (keys.text("scoring_func", score) != score) keys.problem("scoring_func", score);
  if (keys.positive("moe_layer_freq", 1) != 1 && !keys.is_wrong("moe_layer_freq")) keys.problem("moe_layer_freq", "1");
}

void read_deepseek_v2(ConfigReader& keys, ModelConfig& config) {
  read_latent_fields(keys, config, {.heads = 32, .positions = 2048});
  config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  const std::string method = keys.text("topk_method", "greedy");
  if (method != "greedy" && method != "group_limited_greedy")
    keys.problem("topk_method", "greedy or group_limited_greedy");
  ExpertsConfig defaults{.count = 64, .chosen = 6, .d_ffn = 1407, .shared = 2 * 1407};
  defaults.group_best = 1;
  defaults.precise_router = true;
  read_grouped_experts(keys, config, defaults);
  if (method == "greedy") config.experts.groups = config.experts.groups_chosen = 1;
  read_first_dense(keys, config, 0);
  check_fixed(keys, "softmax");
  // versions of the model's code treat these differently
  for (const std::string_view key : {"norm_topk_prob", "mlp_bias"})
    if (keys.flag(key)) keys.problem(key, "false, as published models of this family have it");
}

void read_deepseek_v3(ConfigReader& keys, ModelConfig& config) {
  read_latent_fields(keys, config);
  if (keys.text("topk_method", "noaux_tc") != "noaux_tc") keys.problem("topk_method", "noaux_tc");
  read_corrected_experts(
      keys, config,
      {.count = 256, .chosen = 8, .d_ffn = 2048, .groups = 8, .groups_chosen = 4, .scale = 2.5, .shared = 2048});
  read_first_dense(keys, config, 3);
  check_fixed(keys, "sigmoid");
}

/// Reads "dense" or "sparse" for each layer. If the key is absent, all layers except the first have experts.
void read_layers_with_experts(ConfigReader& keys, ModelConfig& config) {
  const std::vector<std::string> types = keys.texts("mlp_layer_types");
  if (types.empty()) return read_first_dense(keys, config, 1);
  if (static_cast<int64_t>(types.size()) != config.n_layers)
    return keys.problem("mlp_layer_types", cat("one for each of the ", config.n_layers, " layers"));
  for (const std::string& type : types) {
    if (type != "dense" && type != "sparse") return keys.problem("mlp_layer_types", "dense or sparse");
    config.experts.layers.push_back(type == "sparse");
  }
}

void read_glm4_moe_lite(ConfigReader& keys, ModelConfig& config) {
  const LatentConfig latent{.rank = 512, .query_rank = 768, .plain_dim = 192, .turned_dim = 64, .value_dim = 256};
  read_latent_fields(keys, config, {.latent = latent, .heads = 20, .positions = 202752, .norm_eps = 1e-5});
  read_corrected_experts(keys, config, {.count = 64, .chosen = 4, .d_ffn = 1536, .scale = 1.8, .shared = 1536});
  read_layers_with_experts(keys, config);
}

}  // namespace

constinit const Family deepseek_v2 = {
    .name = "DeepSeek-V2",
    .architectures = {"DeepseekV2ForCausalLM"},
    .model_types = {"deepseek_v2"},
    .understood_keys = corrected_expert_keys(
        latent_keys({"first_k_dense_replace", "topk_method", "scoring_func", "moe_layer_freq", "mlp_bias"})),
    .harmless_keys = {"aux_loss_alpha", "seq_aux", "ep_size", "output_router_logits", "router_aux_loss_coef"},
    .weights = rows_of({kLlamaOutside, kLatentBlock, kLlamaMlp, kQwenExperts, kSharedExperts}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_deepseek_v2};

constinit const Family deepseek_v3 = {
    .name = "DeepSeek-V3",
    .architectures = {"DeepseekV3ForCausalLM"},
    .model_types = {"deepseek_v3"},
    .understood_keys =
        corrected_expert_keys(latent_keys({"first_k_dense_replace", "topk_method", "scoring_func", "moe_layer_freq"})),
    .harmless_keys = {"aux_loss_alpha", "seq_aux", "ep_size", "output_router_logits", "router_aux_loss_coef",
                      "num_nextn_predict_layers", "num_mtp_layers"},
    .weights = rows_of({kLlamaOutside, kLatentBlock, kLlamaMlp, kQwenExperts, kRouterCorrection, kSharedExperts}),
    .ignored_tensors = {"model.layers.61.*"},  // a layer that predicts one more token
    .read = read_deepseek_v3};

constinit const Family glm4_moe_lite = {
    .name = "GLM-4.7-Flash",
    .architectures = {"Glm4MoeLiteForCausalLM"},
    .model_types = {"glm4_moe_lite"},
    .understood_keys = corrected_expert_keys(latent_keys({"first_k_dense_replace", "mlp_layer_types", "topk_method"})),
    .harmless_keys = {"num_nextn_predict_layers", "num_mtp_layers", "output_router_logits", "router_aux_loss_coef"},
    .weights = rows_of({kLlamaOutside, kLatentBlock, kLlamaMlp, kQwenExperts, kRouterCorrection, kSharedExperts}),
    .ignored_tensors = {"model.layers.47.*"},  // a layer that predicts one more token
    .read = read_glm4_moe_lite};

}  // namespace lancet
