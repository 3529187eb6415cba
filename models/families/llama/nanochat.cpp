// nanochat (Karpathy 2025): norms without weights, also for embeddings and for rotated queries and keys, whose rotary
// embedding has the opposite direction; a squared ReLU without a gate; capped logits.
#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"

namespace lancet {
namespace {

constexpr WeightRow kNanochatMlp[] = {{kUp, "model.layers.{}.mlp.fc1.weight"},
                                      {kDown, "model.layers.{}.mlp.fc2.weight"}};

void read_nanochat(ConfigReader& keys, ModelConfig& config) {
  read_llama_fields(keys, config);
  config.bare_norms = config.normed_embedding = config.norms_turned_heads = true;
  config.head_norm = HeadNorm::kPerHead;
  config.rope.is_backwards = true;
  config.gated_mlp = false;
  config.activation = read_activation(keys, "hidden_act", "relu2");
  config.qkv_bias = config.attention_out_bias = keys.flag("attention_bias");
  if (!keys.is_null("final_logit_softcapping")) config.logits_cap = keys.above_zero("final_logit_softcapping", 15);
}

}  // namespace

constinit const Family nanochat = {.name = "nanochat",
                                   .architectures = {"NanoChatForCausalLM"},
                                   .model_types = {"nanochat"},
                                   .understood_keys = llama_keys({"attention_bias", "final_logit_softcapping"}),
                                   .weights = rows_of({kLlamaOutside, kLlamaAttention, kNanochatMlp}),
                                   .ignored_tensors = kLlamaIgnoredTensors,
                                   .read = read_nanochat};

}  // namespace lancet
