// The text model of Gemma 3 (arXiv 2503.19786): Gemma 2's norms, normed queries and keys. There are five layers with a
// window, which have their own rotary base, for each layer without one.
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "gemma_config.h"

namespace lancet {
namespace {

/// transformers 4: rope_theta and rope_scaling are for layers without a window, rope_local_base_freq is for the others.
void read_flat_rope(ConfigReader& keys, const RopeDefaults& local, ModelConfig& config) {
  config.rope = read_rope(keys, config, {.theta = 1e6});
  config.window_rope = RopeConfig{.dim = config.head_dim, .theta = local.theta};
  std::optional<ConfigReader> scaling = keys.object("rope_scaling");
  if (!scaling) return;
  refuse_truncate(*scaling);
  if (scaling->has("type") && !scaling->has("rope_type"))
    scaling->problem("type", "its name to be rope_type: transformers reads no other in this family");
}

void read_gemma3_rope(ConfigReader& keys, ModelConfig& config) {
  const RopeDefaults local{.theta = keys.above_zero("rope_local_base_freq", 1e4)};
  if (std::optional<ConfigReader> parameters = keys.object("rope_parameters"))
    read_rope_by_type(keys, *parameters, {.theta = keys.above_zero("rope_theta", 1e6)}, local, config);
  else
    read_flat_rope(keys, local, config);
}

void read_gemma3(ConfigReader& keys, ModelConfig& config) {
  // Published files of multi-modal models leave out values that are defaults of the family.
  read_grouped_sizes(keys, config,
                     {.default_positions = 131072, .default_heads = 8, .default_kv_heads = 4, .default_head_dim = 256});
  config.vocab_size = 262208;
  read_gemma_fields(keys, config);
  read_gemma_attention(keys, config);
  config.head_norm = HeadNorm::kPerHead;
  read_gemma3_rope(keys, config);
  const int64_t pattern =
      keys.positive(keys.has("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern", 6);
  read_windows(keys, config, [pattern](int64_t layer) { return (layer + 1) % pattern != 0; });
}

}  // namespace

constinit const Family gemma3 = {
    .name = "Gemma 3",
    .architectures = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"},
    .model_types = {"gemma3_text", "gemma3"},
    .understood_keys = llama_keys({"hidden_activation", "attention_bias", "query_pre_attn_scalar",
                                   "attn_logit_softcapping", "final_logit_softcapping", "sliding_window", "layer_types",
                                   "sliding_window_pattern", "_sliding_window_pattern", "rope_local_base_freq"}),
    .harmless_keys = {"cache_implementation", "vision_config", "boi_token_index", "eoi_token_index",
                      "image_token_index", "mm_tokens_per_image", "boi_token_id", "eoi_token_id", "image_token_id"},
    .nested_under = "text_config",
    .weights = rows_of({kLlamaOutside, kLlamaAttention, kHeadNorms, kGemmaNorms, kLlamaMlp}),
    .other_names = {{{"model.", "language_model.model."}, {"lm_head.", "language_model.lm_head."}},
                    {{"model.", "model.language_model."}}},
    .ignored_tensors = {"vision_tower.*", "multi_modal_projector.*", "model.vision_tower.*",
                        "model.multi_modal_projector.*"},
    .read = read_gemma3};

}  // namespace lancet
