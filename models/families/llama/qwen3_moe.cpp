// Qwen3 with experts in the place of MLPs (arXiv 2505.09388).

#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr WeightRow kQwenExperts[] = {{kRouter, "model.layers.{}.mlp.gate.weight"},
                                      {kGate, "model.layers.{}.mlp.experts.{}.gate_proj.weight"},
                                      {kUp, "model.layers.{}.mlp.experts.{}.up_proj.weight"},
                                      {kDown, "model.layers.{}.mlp.experts.{}.down_proj.weight"}};

/// Every decoder_sparse_step-th layer has experts, but those of mlp_only_layers.
std::vector<bool> layers_with_experts(ConfigReader& keys, int64_t n_layers) {
  const int64_t step = keys.positive("decoder_sparse_step", 1);
  std::vector<bool> layers;
  for (int64_t layer = 0; layer < n_layers; ++layer) layers.push_back((layer + 1) % step == 0);
  for (const int64_t layer : keys.indices("mlp_only_layers", n_layers)) layers[static_cast<size_t>(layer)] = false;
  return layers;
}

void read_qwen3_moe(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.head_norm = HeadNorm::kPerHead;
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  if (keys.flag("use_sliding_window")) read_windows(keys, config, [](int64_t) { return true; });
  const char* count = keys.has("num_local_experts") ? "num_local_experts" : "num_experts";  // transformers 5, 4
  config.experts = read_experts(keys, count, {.count = 128, .chosen = 8});
  config.experts.d_ffn = keys.size("moe_intermediate_size", kMostWide, 768);
  config.experts.sums_to_one = keys.flag("norm_topk_prob");
  config.experts.layers = layers_with_experts(keys, config.n_layers);
}

}  // namespace

Family qwen3_moe() {
  return {.name = "Qwen3-MoE",
          .architectures = {"Qwen3MoeForCausalLM"},
          .model_types = {"qwen3_moe"},
          .understood_keys = llama_keys({"attention_bias", "sliding_window", "use_sliding_window", "num_experts",
                                         "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
                                         "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers"}),
          .harmless_keys = {"router_aux_loss_coef", "output_router_logits", "max_window_layers"},
          .weights = rows_of({llama_rows(kHeadNorms), kQwenExperts}),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_qwen3_moe};
}

}  // namespace lancet
