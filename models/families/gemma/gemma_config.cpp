#include "gemma_config.h"

#include <cmath>

namespace lancet {

void read_gemma_fields(ConfigReader& keys, ModelConfig& config) {
  config.norm = NormKind::kRmsPlusOne;
  config.norm_eps = keys.number("rms_norm_eps", 1e-6);
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  config.embedding_scale = std::sqrt(static_cast<double>(config.d_model));
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
}

void read_gemma_attention(ConfigReader& keys, ModelConfig& config) {
  config.attention_scale = 1 / std::sqrt(keys.above_zero("query_pre_attn_scalar", 256));
  config.attention_cap = keys.has("attn_logit_softcapping") ? keys.above_zero("attn_logit_softcapping") : 0;
  config.logits_cap = keys.has("final_logit_softcapping") ? keys.above_zero("final_logit_softcapping") : 0;
  config.activation =
      read_activation(keys, keys.has("hidden_activation") ? "hidden_activation" : "hidden_act", "gelu_pytorch_tanh");
}

}  // namespace lancet
