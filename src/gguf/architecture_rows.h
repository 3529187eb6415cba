// Rows that architectures share: names of tensors, and metadata that is a key of config.json.
#pragma once

#include "architectures.h"
#include "lancet/gguf/gguf_layout.h"

namespace lancet {

inline constexpr GgufTensorRow kOutside[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};

inline constexpr GgufTensorRow kAttention[] = {{"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
                                               {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
                                               {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
                                               {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
                                               {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
                                               {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
                                               {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"}};

inline constexpr GgufTensorRow kMlp[] = {{"blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
                                         {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
                                         {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
                                         {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"}};

/// Norms before and after attention and MLP.
inline constexpr GgufTensorRow kGemmaNorms[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"}};

/// Norms after them alone.
inline constexpr GgufTensorRow kPostNorms[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"}};

inline constexpr GgufTensorRow kGlmNorms[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_self_attn_layernorm"},
    {"blk.{}.post_ffw_norm", "model.layers.{}.post_mlp_layernorm"},
    {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"}};

inline constexpr GgufTensorRow kFused[] = {{"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
                                           {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"}};

inline constexpr GgufTensorRow kTwoStepMlp[] = {{"blk.{}.ffn_up", "model.layers.{}.mlp.c_fc"},
                                                {"blk.{}.ffn_down", "model.layers.{}.mlp.c_proj"}};

inline constexpr GgufTensorRow kQwenExperts[] = {
    {"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj"},
    {"blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj"},
    {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj"},
    {"blk.{}.ffn_gate_inp_shexp", "model.layers.{}.mlp.shared_expert_gate"},
    {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_expert.gate_proj"},
    {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_expert.up_proj"},
    {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_expert.down_proj"}};

inline constexpr GgufTensorRow kMixtralExperts[] = {
    {"blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"},
    {"blk.{}.ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.{}.w1"},
    {"blk.{}.ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.{}.w3"},
    {"blk.{}.ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.{}.w2"}};

inline constexpr GgufTensorRow kGptOssNames[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.router"},
    {"blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj"},
    {"blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj"},
    {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj"}};
inline constexpr GgufTensorRow kSinks[] = {{"blk.{}.attn_sinks.weight", "model.layers.{}.self_attn.sinks"}};

/// A gated delta rule in place of attention.
inline constexpr GgufTensorRow kDeltaNames[] = {
    {"blk.{}.post_attention_norm", "model.layers.{}.post_attention_layernorm"},
    {"blk.{}.attn_qkv", "model.layers.{}.linear_attn.in_proj_qkv"},
    {"blk.{}.attn_gate", "model.layers.{}.linear_attn.in_proj_z"},
    {"blk.{}.ssm_beta", "model.layers.{}.linear_attn.in_proj_b"},
    {"blk.{}.ssm_alpha", "model.layers.{}.linear_attn.in_proj_a"},
    {"blk.{}.ssm_conv1d", "model.layers.{}.linear_attn.conv1d"},
    {"blk.{}.ssm_norm", "model.layers.{}.linear_attn.norm"},
    {"blk.{}.ssm_out", "model.layers.{}.linear_attn.out_proj"}};
inline constexpr GgufTensorRow kDeltaWholeNames[] = {
    {"blk.{}.ssm_a", "model.layers.{}.linear_attn.A_log", GgufChange::kLogDecay},
    {"blk.{}.ssm_dt.bias", "model.layers.{}.linear_attn.dt_bias"}};

/// Latent attention, and DeepSeek's experts. Older files have attn_kv_b in place of attn_k_b and attn_v_b.
inline constexpr GgufTensorRow kDeepseekNames[] = {
    {"blk.{}.attn_q_a", "model.layers.{}.self_attn.q_a_proj"},
    {"blk.{}.attn_q_a_norm", "model.layers.{}.self_attn.q_a_layernorm"},
    {"blk.{}.attn_q_b", "model.layers.{}.self_attn.q_b_proj"},
    {"blk.{}.attn_kv_a_mqa", "model.layers.{}.self_attn.kv_a_proj_with_mqa"},
    {"blk.{}.attn_kv_a_norm", "model.layers.{}.self_attn.kv_a_layernorm"},
    {"blk.{}.attn_kv_b", "model.layers.{}.self_attn.kv_b_proj"},
    {"blk.{}.attn_k_b", "model.layers.{}.self_attn.k_b_proj"},
    {"blk.{}.attn_v_b", "model.layers.{}.self_attn.v_b_proj"},
    {"blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"},
    {"blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.{}.gate_proj"},
    {"blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.{}.up_proj"},
    {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.{}.down_proj"},
    {"blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_experts.gate_proj"},
    {"blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_experts.up_proj"},
    {"blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_experts.down_proj"}};
inline constexpr GgufTensorRow kRouterCorrections[] = {
    {"blk.{}.exp_probs_b.bias", "model.layers.{}.mlp.gate.e_score_correction_bias"}};

inline constexpr GgufTensorRow kPhi2Names[] = {{"output_norm", "model.final_layernorm"},
                                               {"blk.{}.attn_output", "model.layers.{}.self_attn.dense"},
                                               {"blk.{}.ffn_up", "model.layers.{}.mlp.fc1"},
                                               {"blk.{}.ffn_down", "model.layers.{}.mlp.fc2"}};

inline constexpr GgufTensorRow kLfm2Names[] = {{"token_embd_norm", "model.embedding_norm"},
                                               {"blk.{}.attn_norm", "model.layers.{}.operator_norm"},
                                               {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_layernorm"},
                                               {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_layernorm"},
                                               {"blk.{}.attn_output", "model.layers.{}.self_attn.out_proj"},
                                               {"blk.{}.shortconv.conv", "model.layers.{}.conv.conv"},
                                               {"blk.{}.shortconv.in_proj", "model.layers.{}.conv.in_proj"},
                                               {"blk.{}.shortconv.out_proj", "model.layers.{}.conv.out_proj"},
                                               {"blk.{}.ffn_norm", "model.layers.{}.ffn_norm"},
                                               {"blk.{}.ffn_gate", "model.layers.{}.feed_forward.w1"},
                                               {"blk.{}.ffn_up", "model.layers.{}.feed_forward.w3"},
                                               {"blk.{}.ffn_down", "model.layers.{}.feed_forward.w2"}};

inline constexpr GgufKeyRow kSizes[] = {{"block_count", "num_hidden_layers"},
                                        {"embedding_length", "hidden_size"},
                                        {"feed_forward_length", "intermediate_size"},
                                        {"attention.head_count", "num_attention_heads"},
                                        {"attention.head_count_kv", "num_key_value_heads"},
                                        {"context_length", "max_position_embeddings"}};
/// Without head_count_kv, of which each layer has its own.
inline constexpr GgufKeyRow kLfm2Sizes[] = {
    {"block_count", "num_hidden_layers"},          {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},  {"attention.head_count", "num_attention_heads"},
    {"context_length", "max_position_embeddings"}, {"shortconv.l_cache", "conv_L_cache"}};
inline constexpr GgufKeyRow kHeadSize[] = {{"attention.key_length", "head_dim"}};
inline constexpr GgufKeyRow kWindow[] = {{"attention.key_length", "head_dim"},
                                         {"attention.sliding_window", "sliding_window"}};
inline constexpr GgufKeyRow kMoeKeys[] = {{"expert_count", "num_experts"},
                                          {"expert_used_count", "num_experts_per_tok"},
                                          {"expert_feed_forward_length", "moe_intermediate_size"},
                                          {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
                                          {"attention.key_length", "head_dim"}};
inline constexpr GgufKeyRow kMixtralKeys[] = {{"expert_count", "num_local_experts"},
                                              {"expert_used_count", "num_experts_per_tok"}};
inline constexpr GgufKeyRow kGptOssKeys[] = {{"expert_count", "num_local_experts"},
                                             {"expert_used_count", "num_experts_per_tok"},
                                             {"expert_feed_forward_length", "intermediate_size"}};
inline constexpr GgufKeyRow kDeltaKeys[] = {{"full_attention_interval", "full_attention_interval"},
                                            {"ssm.conv_kernel", "linear_conv_kernel_dim"},
                                            {"ssm.state_size", "linear_key_head_dim"},
                                            {"ssm.group_count", "linear_num_key_heads"},
                                            {"ssm.time_step_rank", "linear_num_value_heads"},
                                            {"ssm.inner_size", "linear_value_size"}};
inline constexpr GgufKeyRow kDeepseekKeys[] = {{"attention.q_lora_rank", "q_lora_rank"},
                                               {"attention.kv_lora_rank", "kv_lora_rank"},
                                               {"leading_dense_block_count", "first_k_dense_replace"},
                                               {"expert_count", "n_routed_experts"},
                                               {"expert_used_count", "num_experts_per_tok"},
                                               {"expert_feed_forward_length", "moe_intermediate_size"},
                                               {"expert_shared_count", "n_shared_experts"},
                                               {"expert_group_count", "n_group"},
                                               {"expert_group_used_count", "topk_group"},
                                               {"expert_weights_scale", "routed_scaling_factor", GgufKeyKind::kNumber},
                                               {"expert_weights_norm", "norm_topk_prob", GgufKeyKind::kFlag},
                                               {"expert_gating_func", kGatingFunction},
                                               {"attention.key_length", kAbsorbedKeySize},
                                               {"attention.value_length", kAbsorbedValueSize},
                                               {"attention.key_length_mla", kLatentKeySize},
                                               {"attention.value_length_mla", kLatentValueSize}};
inline constexpr GgufKeyRow kGraniteKeys[] = {{"embedding_scale", "embedding_multiplier", GgufKeyKind::kNumber},
                                              {"residual_scale", "residual_multiplier", GgufKeyKind::kNumber},
                                              {"attention.scale", "attention_multiplier", GgufKeyKind::kNumber},
                                              {"logit_scale", "logits_scaling", GgufKeyKind::kNumber}};
inline constexpr GgufKeyRow kGemmaKeys[] = {
    {"attention.sliding_window", "sliding_window"},
    {"attn_logit_softcapping", "attn_logit_softcapping", GgufKeyKind::kNumber},
    {"final_logit_softcapping", "final_logit_softcapping", GgufKeyKind::kNumber}};
inline constexpr GgufKeyRow kStableLmKeys[] = {{"use_parallel_residual", "use_parallel_residual", GgufKeyKind::kFlag}};
inline constexpr GgufKeyRow kCohereKeys[] = {{"logit_scale", "logit_scale", GgufKeyKind::kNumber}};
inline constexpr GgufKeyRow kCohere2Keys[] = {{"logit_scale", "logit_scale", GgufKeyKind::kNumber},
                                              {"attention.sliding_window", "sliding_window"}};

}  // namespace lancet
