#include "lancet/models/families.h"

#include <array>

#include "family_list.h"

namespace lancet {
namespace {

constexpr std::string_view kUnderstood[] = {
    "architectures", "model_type",   "vocab_size",          "tie_word_embeddings", "torch_dtype", "dtype",
    "bos_token_id",  "eos_token_id", "quantization_config", "compression_config"};  // QuantScheme reads the last two

/// Keys of training and bookkeeping. Those of transformers' base class are in transformers_keys.json. Here are the keys
/// of its earlier versions, those of most configuration classes, and those that other programs write.
constexpr std::string_view kHarmless[] = {"pretraining_tp",
                                          "output_router_logits",
                                          "router_aux_loss_coef",
                                          "torchscript",
                                          "use_bfloat16",
                                          "tf_legacy_loss",
                                          "tie_encoder_decoder",
                                          "cross_attention_hidden_size",
                                          "tokenizer_class",
                                          "prefix",
                                          "sep_token_id",
                                          "task_specific_params",
                                          "finetuning_task",
                                          "gradient_checkpointing",
                                          "unsloth_version",
                                          "unsloth_fixed",
                                          "auto_map"};

constexpr std::string_view kRefused[] = {"attn_logit_softcapping",
                                         "final_logit_softcapping",
                                         "sliding_window",
                                         "use_sliding_window",
                                         "num_local_experts",
                                         "num_experts",
                                         "partial_rotary_factor",
                                         "attention_bias",
                                         "mlp_bias",
                                         "lm_head_bias",
                                         "add_cross_attention",
                                         "is_decoder",
                                         "use_bidirectional_attention",
                                         "scale_attn_by_inverse_layer_idx",
                                         "reorder_and_upcast_attn",
                                         "pruned_heads"};

constexpr auto places_of(const auto&... families) { return std::array{&families...}; }

}  // namespace

std::span<const Family* const> families() {
  static constexpr auto kFamilies = places_of(LANCET_FAMILIES);
  return kFamilies;
}

std::span<const std::string_view> common_understood_keys() { return kUnderstood; }
std::span<const std::string_view> common_harmless_keys() { return kHarmless; }
std::span<const std::string_view> refused_keys() { return kRefused; }

}  // namespace lancet
