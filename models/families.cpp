#include "lancet/models/families.h"

#include <array>

namespace lancet {
namespace {

std::vector<WeightName> llama_weights() {
  return {{WeightKind::kEmbedding, "model.embed_tokens.weight"},
          {WeightKind::kAttnNorm, "model.layers.{}.input_layernorm.weight"},
          {WeightKind::kQuery, "model.layers.{}.self_attn.q_proj.weight"},
          {WeightKind::kKey, "model.layers.{}.self_attn.k_proj.weight"},
          {WeightKind::kValue, "model.layers.{}.self_attn.v_proj.weight"},
          {WeightKind::kAttnOut, "model.layers.{}.self_attn.o_proj.weight"},
          {WeightKind::kQueryBias, "model.layers.{}.self_attn.q_proj.bias"},
          {WeightKind::kKeyBias, "model.layers.{}.self_attn.k_proj.bias"},
          {WeightKind::kValueBias, "model.layers.{}.self_attn.v_proj.bias"},
          {WeightKind::kAttnOutBias, "model.layers.{}.self_attn.o_proj.bias"},
          {WeightKind::kMlpNorm, "model.layers.{}.post_attention_layernorm.weight"},
          {WeightKind::kGate, "model.layers.{}.mlp.gate_proj.weight"},
          {WeightKind::kUp, "model.layers.{}.mlp.up_proj.weight"},
          {WeightKind::kDown, "model.layers.{}.mlp.down_proj.weight"},
          {WeightKind::kGateBias, "model.layers.{}.mlp.gate_proj.bias"},
          {WeightKind::kUpBias, "model.layers.{}.mlp.up_proj.bias"},
          {WeightKind::kDownBias, "model.layers.{}.mlp.down_proj.bias"},
          {WeightKind::kFinalNorm, "model.norm.weight"},
          {WeightKind::kHead, "lm_head.weight"}};
}

Family llama() {
  return {
      .name = "Llama",
      .architecture = "LlamaForCausalLM",
      .model_type = "llama",
      .understood_keys = {"architectures",
                          "model_type",
                          "vocab_size",
                          "hidden_size",
                          "intermediate_size",
                          "num_hidden_layers",
                          "num_attention_heads",
                          "num_key_value_heads",
                          "head_dim",
                          "max_position_embeddings",
                          "rms_norm_eps",
                          "rope_theta",
                          "rope_scaling",
                          "rope_parameters",
                          "tie_word_embeddings",
                          "attention_bias",
                          "mlp_bias",
                          "hidden_act",
                          "torch_dtype",
                          "dtype",
                          "bos_token_id",
                          "eos_token_id"},
      .harmless_keys = {"_name_or_path",
                        "attention_dropout",
                        "initializer_range",
                        "pad_token_id",
                        "pretraining_tp",
                        "transformers_version",
                        "use_cache",
                        "output_attentions",
                        "output_hidden_states",
                        "return_dict",
                        "return_dict_in_generate",
                        "chunk_size_feed_forward",
                        "is_encoder_decoder",
                        "id2label",
                        "label2id",
                        "problem_type",
                        "task_specific_params",
                        "finetuning_task",
                        "_attn_implementation_autoset",
                        "unsloth_version",
                        "unsloth_fixed",
                        "auto_map",
                        "_commit_hash"},
      .refused_keys = {"quantization_config", "compression_config", "attn_logit_softcapping", "final_logit_softcapping",
                       "sliding_window", "use_sliding_window", "num_local_experts", "num_experts",
                       "partial_rotary_factor", "add_cross_attention"},
      .weights = llama_weights(),
      .ignored_tensors = {"model.layers.{}.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"},
  };
}

}  // namespace

std::span<const Family> families() {
  static const std::array<Family, 1> kFamilies{llama()};
  return kFamilies;
}

}  // namespace lancet
