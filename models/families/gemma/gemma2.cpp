// Gemma 2 (arXiv 2408.00118): norms before and after attention and MLP, capped scores and logits, a window in every
// other layer.
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "gemma_config.h"

namespace lancet {
namespace {

void read_gemma2(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  read_gemma_fields(keys, config);
  read_gemma_attention(keys, config);
  config.rope = read_rope(keys, config);
  read_windows(keys, config, [](int64_t layer) { return layer % 2 == 0; });
}

}  // namespace

constinit const Family gemma2 = {
    .name = "Gemma 2",
    .architectures = {"Gemma2ForCausalLM"},
    .model_types = {"gemma2"},
    .understood_keys =
        llama_keys({"hidden_activation", "attention_bias", "query_pre_attn_scalar", "attn_logit_softcapping",
                    "final_logit_softcapping", "sliding_window", "layer_types"}),
    .harmless_keys = {"cache_implementation", "sliding_window_size"},
    .weights = rows_of({kLlamaOutside, kLlamaAttention, kGemmaNorms, kLlamaMlp}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_gemma2};

}  // namespace lancet
