// HunYuan, dense (Tencent 2025): each head of queries and keys is normed after the rotary embedding.
#include <cmath>

#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rope_reader.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kHunyuanNorms[] = {{kQueryNorm, "model.layers.{}.self_attn.query_layernorm.weight"},
                                       {kKeyNorm, "model.layers.{}.self_attn.key_layernorm.weight"}};

/// "dynamic" with an alpha only changes the base, once for all texts.
RopeConfig read_hunyuan_rope(ConfigReader& keys, const ModelConfig& config) {
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    std::optional<ConfigReader> object = keys.object(key);
    if (!object || !object->has("alpha")) continue;
    const double theta = object->above_zero("rope_theta", keys.above_zero("rope_theta", 1e4));
    const auto dim = static_cast<double>(config.head_dim);
    const double alpha = object->above_zero("alpha");
    if (object->text(object->has("rope_type") ? "rope_type" : "type", "") != "dynamic" || config.head_dim < 4)
      object->problem("alpha", "no such key but in an object of type dynamic, for heads of at least 4 numbers");
    return {.dim = config.head_dim, .theta = theta * std::pow(alpha, dim / (dim - 2))};
  }
  return read_rope(keys, config);
}

void read_hunyuan(ConfigReader& keys, ModelConfig& config) {
  read_grouped_sizes(keys, config);
  config.norm_eps = keys.number("rms_norm_eps", 1e-5);
  config.rope = read_hunyuan_rope(keys, config);
  config.head_norm = HeadNorm::kPerHead;
  config.norms_turned_heads = true;
  config.activation = read_activation(keys, "hidden_act", "silu");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
}

}  // namespace

constinit const Family hunyuan = {.name = "HunYuan",
                                  .architectures = {"HunYuanDenseV1ForCausalLM"},
                                  .model_types = {"hunyuan_v1_dense"},
                                  .understood_keys = llama_keys({"attention_bias"}),
                                  .harmless_keys = {"eod_token_id",
                                                    "mlp_bias",
                                                    "use_qk_norm",
                                                    "use_rotary_pos_emb",
                                                    "use_cla",
                                                    "cla_share_factor",
                                                    "org_vocab_size",
                                                    "norm_type",
                                                    "add_classification_head",
                                                    "class_num",
                                                    "pool_type",
                                                    "im_start_id",
                                                    "im_end_id",
                                                    "im_newline_id",
                                                    "mask_init_id",
                                                    "pad_id",
                                                    "sep_token_id",
                                                    "text_start_id",
                                                    "text_end_id",
                                                    "attention_head_dim"},
                                  .weights = llama_rows(kHunyuanNorms),
                                  .ignored_tensors = kLlamaIgnoredTensors,
                                  .read = read_hunyuan};

}  // namespace lancet
