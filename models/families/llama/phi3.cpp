// Phi-3, Phi-3.5 and Phi-4 (arXiv 2404.14219, 2412.08905): Llama's block with fused projections and LongRoPE.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kFused[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                {kQuery, "model.layers.{}.self_attn.qkv_proj.weight"},
                                {kKey, "model.layers.{}.self_attn.qkv_proj.weight"},
                                {kValue, "model.layers.{}.self_attn.qkv_proj.weight"},
                                {kAttnOut, "model.layers.{}.self_attn.o_proj.weight"},
                                {kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"},
                                {kGate, "model.layers.{}.mlp.gate_up_proj.weight"},
                                {kUp, "model.layers.{}.mlp.gate_up_proj.weight"},
                                {kDown, "model.layers.{}.mlp.down_proj.weight"}};

void read_phi3(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.rope = read_rope(keys, config,
                          {.share = keys.share("partial_rotary_factor", 1.0),
                           .original_max_positions = keys.positive("original_max_position_embeddings", 4096)});
  if (config.rope.scaling != RopeConfig::Scaling::kNone && config.rope.scaling != RopeConfig::Scaling::kLongRope)
    keys.problem(keys.has("rope_scaling") ? "rope_scaling" : "rope_parameters", "one of type default or longrope");
  config.activation = read_activation(keys, "hidden_act", "silu");
  read_windows(keys, config, [](int64_t) { return true; });
}

}  // namespace

constinit const Family phi3 = {
    .name = "Phi-3",
    .architectures = {"Phi3ForCausalLM"},
    .model_types = {"phi3"},
    .understood_keys = llama_keys({"sliding_window", "layer_types", "original_max_position_embeddings"}),
    .harmless_keys = {"resid_pdrop", "embd_pdrop", "interpolate_factor", "full_attn_mod"},
    .weights = rows_of({kLlamaOutside, kFused}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_phi3};

}  // namespace lancet
