// LFM2 (Liquid AI 2025): gated short convolutions in most layers, attention with normed heads in the others. LFM2-MoE
// has experts in all layers except the first ones, chosen as in DeepSeek-V3.
#include "families/config_reader.h"
#include "families/expert_rows.h"
#include "families/family_list.h"
#include "families/hybrid_rows.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kLfm2Layers[] = {{kEmbedding, "model.embed_tokens.weight"},
                                     {kFinalNorm, "model.embedding_norm.weight"},
                                     {kHead, "lm_head.weight"},
                                     {kAttnNorm, "model.layers.{}.operator_norm.weight"},
                                     {kQuery, "model.layers.{}.self_attn.q_proj.weight"},
                                     {kKey, "model.layers.{}.self_attn.k_proj.weight"},
                                     {kValue, "model.layers.{}.self_attn.v_proj.weight"},
                                     {kQueryNorm, "model.layers.{}.self_attn.q_layernorm.weight"},
                                     {kKeyNorm, "model.layers.{}.self_attn.k_layernorm.weight"},
                                     {kAttnOut, "model.layers.{}.self_attn.out_proj.weight"},
                                     {kMixerKey, "model.layers.{}.conv.in_proj.weight"},
                                     {kMixerGate, "model.layers.{}.conv.in_proj.weight"},
                                     {kMixerValue, "model.layers.{}.conv.in_proj.weight"},
                                     {kMixerTaps, "model.layers.{}.conv.conv.weight"},
                                     {kMixerOut, "model.layers.{}.conv.out_proj.weight"},
                                     {kMlpNorm, "model.layers.{}.ffn_norm.weight"},
                                     {kGate, "model.layers.{}.feed_forward.w1.weight"},
                                     {kUp, "model.layers.{}.feed_forward.w3.weight"},
                                     {kDown, "model.layers.{}.feed_forward.w2.weight"}};
constexpr WeightRow kLfm2Experts[] = {{kRouter, "model.layers.{}.feed_forward.gate.weight"},
                                      {kRouterBias, "model.layers.{}.feed_forward.expert_bias"},
                                      {kGate, "model.layers.{}.feed_forward.experts.{}.w1.weight"},
                                      {kUp, "model.layers.{}.feed_forward.experts.{}.w3.weight"},
                                      {kDown, "model.layers.{}.feed_forward.experts.{}.w2.weight"},
                                      {kGate, "model.layers.{}.feed_forward.experts.gate_up_proj", Layout::kByExpert},
                                      {kUp, "model.layers.{}.feed_forward.experts.gate_up_proj", Layout::kByExpert},
                                      {kDown, "model.layers.{}.feed_forward.experts.down_proj", Layout::kByExpert}};

/// Returns the file's number, or the two thirds of it that training used, rounded up to a multiple.
int64_t adjusted_ffn(ConfigReader& keys, int64_t d_ffn) {
  const double factor = keys.above_zero("block_ffn_dim_multiplier", 1);
  const int64_t multiple = keys.positive("block_multiple_of", 256);
  if (!keys.flag_or_true("block_auto_adjust_ff_dim")) return d_ffn;
  const auto scaled = static_cast<int64_t>(factor * static_cast<double>(2 * d_ffn / 3));
  return (scaled + multiple - 1) / multiple * multiple;
}

void read_short_convolution(ConfigReader& keys, ModelConfig& config) {
  config.norm_eps = keys.number("norm_eps", 1e-5);
  config.head_norm = HeadNorm::kPerHead;
  config.rope = read_rope(keys, config, {.theta = 1e6});
  config.tied_embeddings =
      keys.has("tie_embedding") ? keys.flag("tie_embedding") : keys.flag_or_true("tie_word_embeddings");
  if (keys.flag("conv_bias")) keys.problem("conv_bias", "false or no such key");
  RecurrenceConfig& mixer = config.recurrence;
  mixer.kind = MixerKind::kShortConvolution;
  mixer.key_heads = mixer.value_heads = 1;
  mixer.key_dim = mixer.value_dim = config.d_model;
  mixer.taps = keys.size("conv_L_cache", kMostHeads, 3);
  mixer.layers = layers_with_mixer(keys, config.n_layers, {"conv"}, [&](ConfigReader& own) {
    std::vector<bool> layers(static_cast<size_t>(config.n_layers), own.has("full_attn_idxs"));
    for (const int64_t layer : own.indices("full_attn_idxs", config.n_layers))
      layers[static_cast<size_t>(layer)] = false;
    return layers;
  });
}

void read_lfm2(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(
      keys, config,
      {.ffn = keys.has("block_ff_dim") ? "block_ff_dim" : "intermediate_size", .default_positions = 128000});
  config.d_ffn = adjusted_ffn(keys, config.d_ffn);
  read_short_convolution(keys, config);
}

void read_lfm2_moe(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config, {.default_positions = 128000});
  read_short_convolution(keys, config);
  ExpertsConfig& experts = config.experts;
  experts = read_experts(keys, keys.has("num_local_experts") ? "num_local_experts" : "num_experts",
                         {.count = 32, .chosen = 4});
  experts.d_ffn = keys.size("moe_intermediate_size", kMostWide, 1792);
  experts.score = RouterScore::kSigmoid;
  experts.choice_bias = keys.flag_or_true("use_expert_bias");
  experts.sums_to_one = keys.flag_or_true("norm_topk_prob");
  experts.added_to_sum = 1e-6;
  experts.scale = keys.above_zero("routed_scaling_factor", 1);
  const auto n_dense = static_cast<int64_t>(keys.at_least("num_dense_layers", 0, 2));
  for (int64_t layer = 0; layer < config.n_layers; ++layer) experts.layers.push_back(layer >= n_dense);
}

constexpr KeyList short_convolution_keys(std::initializer_list<std::string_view> more) {
  return with_keys(
      llama_keys({"norm_eps", "layer_types", "full_attn_idxs", "conv_bias", "conv_L_cache", "tie_embedding"}), more);
}

/// Keys about training, and about sizes that other keys also give.
constexpr KeyList kOtherLfm2Keys = {"block_dim",
                                    "block_mlp_init_scale",
                                    "block_norm_eps",
                                    "block_out_init_scale",
                                    "block_use_swiglu",
                                    "block_use_xavier_init",
                                    "conv_dim",
                                    "conv_dim_out",
                                    "conv_use_xavier_init",
                                    "num_heads",
                                    "theta",
                                    "use_pos_enc",
                                    "output_router_logits"};

}  // namespace

constinit const Family lfm2 = {
    .name = "LFM2",
    .architectures = {"Lfm2ForCausalLM"},
    .model_types = {"lfm2"},
    .understood_keys = short_convolution_keys(
        {"block_ff_dim", "block_multiple_of", "block_ffn_dim_multiplier", "block_auto_adjust_ff_dim"}),
    .harmless_keys = kOtherLfm2Keys,
    .weights = rows_of({kLfm2Layers}),
    .read = read_lfm2};

constinit const Family lfm2_moe = {
    .name = "LFM2-MoE",
    .architectures = {"Lfm2MoeForCausalLM"},
    .model_types = {"lfm2_moe"},
    .understood_keys =
        short_convolution_keys({"num_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
                                "norm_topk_prob", "use_expert_bias", "routed_scaling_factor", "num_dense_layers"}),
    .harmless_keys = kOtherLfm2Keys,
    .weights = rows_of({kLfm2Layers, kLfm2Experts}),
    .experts_parameter = "model.layers.{}.feed_forward.experts.down_proj",
    .read = read_lfm2_moe};

}  // namespace lancet
