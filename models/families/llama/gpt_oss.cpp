// gpt-oss (OpenAI 2025): experts with biases and clamped gates, all experts of a layer in one tensor; windows in every
// other layer; additional scores without a value, which take a part of the attention weight (sinks).
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr auto kColumns = Layout::kByExpertColumns;
constexpr WeightRow kSinkRows[] = {{kSinks, "model.layers.{}.self_attn.sinks"}};
constexpr WeightRow kExpertRows[] = {{kRouter, "model.layers.{}.mlp.router.weight"},
                                     {kRouterOffset, "model.layers.{}.mlp.router.bias"},
                                     {kGate, "model.layers.{}.mlp.experts.gate_up_proj", kColumns},
                                     {kUp, "model.layers.{}.mlp.experts.gate_up_proj", kColumns},
                                     {kDown, "model.layers.{}.mlp.experts.down_proj", kColumns},
                                     {kGateBias, "model.layers.{}.mlp.experts.gate_up_proj_bias", kColumns},
                                     {kUpBias, "model.layers.{}.mlp.experts.gate_up_proj_bias", kColumns},
                                     {kDownBiases, "model.layers.{}.mlp.experts.down_proj_bias", Layout::kByExpert},
                                     // of GGUF files, which have gates, ups and downs apart
                                     {kGate, "model.layers.{}.mlp.experts.{}.gate_proj.weight"},
                                     {kUp, "model.layers.{}.mlp.experts.{}.up_proj.weight"},
                                     {kDown, "model.layers.{}.mlp.experts.{}.down_proj.weight"},
                                     {kGateBias, "model.layers.{}.mlp.experts.{}.gate_proj.bias"},
                                     {kUpBias, "model.layers.{}.mlp.experts.{}.up_proj.bias"},
                                     {kDownBiases, "model.layers.{}.mlp.experts.{}.down_proj.bias"}};

void read_gpt_oss(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config,
                    {.default_positions = 131072, .default_heads = 64, .default_kv_heads = 8, .default_head_dim = 64},
                    /*default_eps=*/1e-5, /*default_theta=*/150000);
  if (!keys.has("rope_parameters") && !keys.has("rope_scaling"))
    keys.problem("rope_parameters", "the rotary embedding, as every file of this family has it");
  config.norm = NormKind::kRmsPrecise;
  config.attention_sinks = true;
  config.qkv_bias = config.attention_out_bias = keys.flag_or_true("attention_bias");
  read_windows(
      keys, config, [](int64_t layer) { return layer % 2 == 0; }, /*default_window=*/128);
  if (config.activation != Activation::kSilu) keys.problem("hidden_act", "silu");
  config.activation = Activation::kLimitedSwish;
  config.mlp_slope = keys.above_zero("swiglu_alpha", 1.702);
  config.mlp_limit = keys.above_zero("swiglu_limit", 7);
  ExpertsConfig& experts = config.experts;
  experts = read_experts(keys, "num_local_experts", {.count = 128, .chosen = 4});
  experts.d_ffn = config.d_ffn;
  experts.sums_to_one = experts.router_bias = experts.mlp_biases = experts.in_one_tensor = true;
  experts.layers.assign(static_cast<size_t>(config.n_layers), true);
}

}  // namespace

constinit const Family gpt_oss = {
    .name = "gpt-oss",
    .architectures = {"GptOssForCausalLM"},
    .model_types = {"gpt_oss"},
    .understood_keys = llama_keys({"attention_bias", "sliding_window", "layer_types", "swiglu_alpha", "swiglu_limit",
                                   "num_local_experts", "num_experts_per_tok"}),
    // experts_per_token and initial_context_length repeat other keys
    .harmless_keys = {"router_aux_loss_coef", "output_router_logits", "experts_per_token", "initial_context_length"},
    .weights = rows_of({llama_rows(kSinkRows), kExpertRows}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .experts_parameter = "model.layers.{}.mlp.experts.down_proj",
    .joins_experts = true,
    .read = read_gpt_oss};

}  // namespace lancet
