// ERNIE 4.5, dense (Baidu 2025): Llama's block; pairs of adjacent numbers turn.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_ernie4_5(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config, {.default_kv_heads = 2, .default_head_dim = 128}, /*default_eps=*/1e-5,
                    /*default_theta=*/5e5);
  config.rope.pairs = RopeConfig::Pairs::kAdjacent;
  config.qkv_bias = config.attention_out_bias = config.mlp_bias = keys.flag("use_bias");
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
}

}  // namespace

Family ernie4_5() {
  return {.name = "ERNIE 4.5",
          .architectures = {"Ernie4_5ForCausalLM"},
          .model_types = {"ernie4_5"},
          .understood_keys = llama_keys({"use_bias"}),
          .harmless_keys = {"compression_ratio", "use_flash_attention", "weight_share_add_bias"},
          .weights = llama_rows(),
          .ignored_tensors = llama_ignored_tensors(),
          .read = read_ernie4_5};
}

}  // namespace lancet
