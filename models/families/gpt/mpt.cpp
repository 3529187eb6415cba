// MPT (MosaicML 2023): ALiBi, LayerNorm without biases, fused queries, keys and values.
#include "alibi.h"
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kMptRows[] = {{kEmbedding, "transformer.wte.weight"},
                                  {kFinalNorm, "transformer.norm_f.weight"},
                                  {kHead, "lm_head.weight"},
                                  {kAttnNorm, "transformer.blocks.{}.norm_1.weight"},
                                  {kQuery, "transformer.blocks.{}.attn.Wqkv.weight"},
                                  {kKey, "transformer.blocks.{}.attn.Wqkv.weight"},
                                  {kValue, "transformer.blocks.{}.attn.Wqkv.weight"},
                                  {kAttnOut, "transformer.blocks.{}.attn.out_proj.weight"},
                                  {kMlpNorm, "transformer.blocks.{}.norm_2.weight"},
                                  {kUp, "transformer.blocks.{}.ffn.up_proj.weight"},
                                  {kDown, "transformer.blocks.{}.ffn.down_proj.weight"}};

void read_mpt_attention(ConfigReader& keys, ModelConfig& config) {
  std::optional<ConfigReader> attention = keys.object("attn_config");
  if (!attention) return keys.problem("attn_config", "an object");
  if (!attention->flag_or_true("alibi")) attention->problem("alibi", "true: transformers computes with it in any case");
  if (attention->number("alibi_bias_max", 8) != 8)
    attention->problem("alibi_bias_max", "8, with which transformers computes in any case");
  config.alibi_slopes = mpt_slopes(config.n_heads);
  if (attention->has("clip_qkv")) config.qkv_limit = attention->above_zero("clip_qkv");
  if (attention->has("softmax_scale")) config.attention_scale = attention->above_zero("softmax_scale");
}

void read_mpt(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config,
             {.model = "d_model",
              .ffn = "ffn_size",
              .layers = "n_layers",
              .heads = "n_heads",
              .positions = "max_seq_len",
              .ffn_of_model = 4});
  read_gpt_fields(keys, config);
  config.activation = Activation::kGelu;
  read_mpt_attention(keys, config);
}

}  // namespace

constinit const Family mpt = {
    .name = "MPT",
    .architectures = {"MptForCausalLM", "MPTForCausalLM"},
    .model_types = {"mpt"},
    .understood_keys = {"d_model", "n_layers", "n_heads", "max_seq_len", "layer_norm_epsilon", "attn_config"},
    .harmless_keys = {"expansion_ratio", "resid_pdrop", "emb_pdrop", "learned_pos_emb", "init_device", "logit_scale",
                      "no_bias", "embedding_fraction", "norm_type", "init_config", "tokenizer_name", "verbose"},
    .weights = rows_of({kMptRows}),
    .ignored_tensors = {},
    .read = read_mpt};

}  // namespace lancet
