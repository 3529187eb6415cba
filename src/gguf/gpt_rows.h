// Rows of the architectures whose classes have GPT-2's or GPT-NeoX's names.
#pragma once

#include "architectures.h"

namespace lancet {

inline constexpr GgufTensorRow kGpt2Names[] = {
    {"token_embd", "transformer.wte"},
    {"position_embd", "transformer.wpe"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "transformer.h.{}.ln_1"},
    {"blk.{}.attn_qkv", "transformer.h.{}.attn.c_attn", GgufChange::kTransposed},
    {"blk.{}.attn_output", "transformer.h.{}.attn.c_proj", GgufChange::kTransposed},
    {"blk.{}.ffn_norm", "transformer.h.{}.ln_2"},
    {"blk.{}.ffn_up", "transformer.h.{}.mlp.c_fc", GgufChange::kTransposed},
    {"blk.{}.ffn_down", "transformer.h.{}.mlp.c_proj", GgufChange::kTransposed}};

inline constexpr GgufTensorRow kGptjNames[] = {{"token_embd", "transformer.wte"},
                                               {"output_norm", "transformer.ln_f"},
                                               {"output", "lm_head"},
                                               {"blk.{}.attn_norm", "transformer.h.{}.ln_1"},
                                               {"blk.{}.attn_q", "transformer.h.{}.attn.q_proj"},
                                               {"blk.{}.attn_k", "transformer.h.{}.attn.k_proj"},
                                               {"blk.{}.attn_v", "transformer.h.{}.attn.v_proj"},
                                               {"blk.{}.attn_output", "transformer.h.{}.attn.out_proj"},
                                               {"blk.{}.ffn_up", "transformer.h.{}.mlp.fc_in"},
                                               {"blk.{}.ffn_down", "transformer.h.{}.mlp.fc_out"}};

inline constexpr GgufTensorRow kNeoxNames[] = {
    {"token_embd", "gpt_neox.embed_in"},
    {"output_norm", "gpt_neox.final_layer_norm"},
    {"output", "embed_out"},
    {"blk.{}.attn_norm", "gpt_neox.layers.{}.input_layernorm"},
    {"blk.{}.attn_qkv", "gpt_neox.layers.{}.attention.query_key_value", GgufChange::kByKeyHead},
    {"blk.{}.attn_output", "gpt_neox.layers.{}.attention.dense"},
    {"blk.{}.ffn_norm", "gpt_neox.layers.{}.post_attention_layernorm"},
    {"blk.{}.ffn_up", "gpt_neox.layers.{}.mlp.dense_h_to_4h"},
    {"blk.{}.ffn_down", "gpt_neox.layers.{}.mlp.dense_4h_to_h"}};

inline constexpr GgufTensorRow kFalconNames[] = {
    {"token_embd", "transformer.word_embeddings"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
    {"blk.{}.attn_norm", "transformer.h.{}.input_layernorm"},
    {"blk.{}.attn_qkv", "transformer.h.{}.self_attention.query_key_value", GgufChange::kByKeyHead},
    {"blk.{}.attn_output", "transformer.h.{}.self_attention.dense"},
    {"blk.{}.ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
    {"blk.{}.ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"}};
/// Of models in which attention and MLP have a norm each: the usual name is the MLP's then.
inline constexpr GgufTensorRow kFalconNorms[] = {{"blk.{}.attn_norm", "transformer.h.{}.ln_mlp"},
                                                 {"blk.{}.attn_norm_2", "transformer.h.{}.ln_attn"}};

inline constexpr GgufKeyRow kGptSizes[] = {{"block_count", "n_layer"},
                                           {"embedding_length", "n_embd"},
                                           {"feed_forward_length", "n_inner"},
                                           {"attention.head_count", "n_head"},
                                           {"context_length", "n_positions"}};
inline constexpr GgufKeyRow kGptjKeys[] = {{"rope.dimension_count", "rotary_dim"}};
inline constexpr GgufKeyRow kNeoxSizes[] = {{"block_count", "num_hidden_layers"},
                                            {"embedding_length", "hidden_size"},
                                            {"feed_forward_length", "intermediate_size"},
                                            {"attention.head_count", "num_attention_heads"},
                                            {"context_length", "max_position_embeddings"},
                                            {"use_parallel_residual", "use_parallel_residual", GgufKeyKind::kFlag}};
inline constexpr GgufKeyRow kFalconSizes[] = {
    {"block_count", "num_hidden_layers"},        {"embedding_length", "hidden_size"},
    {"feed_forward_length", "ffn_hidden_size"},  {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_kv_heads"}, {"context_length", "max_position_embeddings"}};

}  // namespace lancet
