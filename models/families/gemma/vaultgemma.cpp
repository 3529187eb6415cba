// VaultGemma (arXiv 2510.15001): Gemma 2 without norms after the blocks.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"
#include "gemma_config.h"

namespace lancet {
namespace {

constexpr WeightRow kVaultNorms[] = {{kAttnNorm, "model.layers.{}.input_layernorm.weight"},
                                     {kMlpNorm, "model.layers.{}.pre_feedforward_layernorm.weight"}};

void read_vaultgemma(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  read_gemma_fields(keys, config);
  read_gemma_attention(keys, config);
  config.rope = read_rope(keys, config);
  read_windows(
      keys, config, [](int64_t layer) { return layer % 2 == 0; }, 4096);
}

}  // namespace

constinit const Family vaultgemma = {
    .name = "VaultGemma",
    .architectures = {"VaultGemmaForCausalLM"},
    .model_types = {"vaultgemma"},
    .understood_keys =
        llama_keys({"hidden_activation", "attention_bias", "query_pre_attn_scalar", "attn_logit_softcapping",
                    "final_logit_softcapping", "sliding_window", "layer_types"}),
    .harmless_keys = {"cache_implementation"},
    .weights = rows_of({kLlamaOutside, kLlamaAttention, kVaultNorms, kLlamaMlp}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_vaultgemma};

}  // namespace lancet
