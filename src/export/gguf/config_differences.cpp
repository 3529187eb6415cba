#include "config_differences.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace lancet {
namespace {

bool is_near(double a, double b) {
  constexpr double kOfF32 = 1e-6;
  return a == b || std::abs(a - b) <= kOfF32 * std::max(std::abs(a), std::abs(b));
}

bool are_near(const std::vector<double>& a, const std::vector<double>& b) { return std::ranges::equal(a, b, is_near); }

class Differences {
 public:
  Differences(const ModelConfig& one, const ModelConfig& other) : one_(one), other_(other) {}

  std::vector<std::string> find() {
    compare_sizes();
    compare_blocks();
    compare_scales();
    compare_layers();
    compare_rope("rope_parameters or rope_scaling", one_.rope, other_.rope);
    const bool has_windows = std::ranges::count(one_.windowed, true) > 0;
    if (has_windows)
      compare_rope("the rotary embedding of layers with a window", one_.window_rope.value_or(one_.rope),
                   other_.window_rope.value_or(other_.rope));
    compare_experts();
    compare_mixers();
    compare_rest();
    return std::move(keys_);
  }

 private:
  void note(const char* keys, bool is_same) {
    if (!is_same && std::ranges::find(keys_, keys) == keys_.end()) keys_.emplace_back(keys);
  }

  template <typename Value>
  void same(const char* keys, Value ModelConfig::*field) {
    note(keys, one_.*field == other_.*field);
  }

  void near(const char* keys, double ModelConfig::*field) { note(keys, is_near(one_.*field, other_.*field)); }

  template <typename Answer>
  void same_in_layers(const char* keys, Answer answer) {
    for (int64_t layer = 0; layer < std::min(one_.n_layers, other_.n_layers); ++layer)
      note(keys, answer(one_, layer) == answer(other_, layer));
  }

  void compare_sizes() {
    same("vocab_size", &ModelConfig::vocab_size);
    same("hidden_size", &ModelConfig::d_model);
    same("intermediate_size", &ModelConfig::d_ffn);
    same("num_hidden_layers", &ModelConfig::n_layers);
    same("num_attention_heads", &ModelConfig::n_heads);
    same("num_key_value_heads", &ModelConfig::n_kv_heads);
    same("head_dim", &ModelConfig::head_dim);
    same("max_position_embeddings", &ModelConfig::max_positions);
  }

  void compare_blocks() {
    same("use_parallel_residual", &ModelConfig::order);
    same("the kind of norms", &ModelConfig::norm);
    near("rms_norm_eps or layer_norm_eps", &ModelConfig::norm_eps);
    same("bare norms", &ModelConfig::bare_norms);
    same("a norm of the embeddings", &ModelConfig::normed_embedding);
    same("the norm before the MLP", &ModelConfig::mlp_norm);
    same("norms after blocks", &ModelConfig::post_norms);
    same("use_qk_norm or qk_layernorm", &ModelConfig::head_norm);
    same("the order of norm and rotary embedding", &ModelConfig::norms_turned_heads);
    same("hidden_act or hidden_activation", &ModelConfig::activation);
    same("the gate of the MLP", &ModelConfig::gated_mlp);
    same("tie_word_embeddings", &ModelConfig::tied_embeddings);
    same("attention_bias or use_bias", &ModelConfig::qkv_bias);
    same("attention_bias or use_bias", &ModelConfig::attention_out_bias);
    same("mlp_bias or use_bias", &ModelConfig::mlp_bias);
    same("lm_head_bias", &ModelConfig::head_bias);
    same("attention sinks", &ModelConfig::attention_sinks);
    same("the gate of attention", &ModelConfig::gated_attention);
  }

  void compare_scales() {
    near("clip_qkv", &ModelConfig::qkv_limit);
    near("query_pre_attn_scalar or attention_multiplier", &ModelConfig::attention_scale);
    near("attn_logit_softcapping", &ModelConfig::attention_cap);
    near("final_logit_softcapping", &ModelConfig::logits_cap);
    near("logit_scale or logits_scaling", &ModelConfig::logits_scale);
    near("embedding_multiplier", &ModelConfig::embedding_scale);
    near("residual_multiplier", &ModelConfig::attention_out_scale);
    near("residual_multiplier", &ModelConfig::mlp_out_scale);
    near("attention_in_multiplier", &ModelConfig::attention_in_scale);
    near("mlp_multipliers", &ModelConfig::gate_scale);
    near("swiglu_alpha", &ModelConfig::mlp_slope);
    near("swiglu_limit", &ModelConfig::mlp_limit);
  }

  void compare_layers() {
    same_in_layers("no_rope_layers", [](const ModelConfig& config, int64_t i) { return config.has_rotary(i); });
    same_in_layers("sliding_window or layer_types", [](const ModelConfig& config, int64_t i) {
      return config.has_window(i) ? config.window : int64_t{0};
    });
    same_in_layers("layer_types", [](const ModelConfig& config, int64_t i) { return config.has_attention(i); });
    same_in_layers("layer_types", [](const ModelConfig& config, int64_t i) { return config.has_recurrence(i); });
    same_in_layers("layers without an MLP", [](const ModelConfig& config, int64_t i) { return config.has_mlp(i); });
    same_in_layers("mlp_only_layers, decoder_sparse_step or first_k_dense_replace",
                   [](const ModelConfig& config, int64_t i) { return config.has_experts(i); });
  }

  void compare_rope(const char* keys, const RopeConfig& a, const RopeConfig& b) {
    note("partial_rotary_factor", a.dim == b.dim);
    if (a.dim == 0) return;
    note(keys, a.pairs == b.pairs && a.is_backwards == b.is_backwards && is_near(a.theta, b.theta) &&
                   a.scaling == b.scaling && is_near(a.factor, b.factor));
    note(keys, is_near(a.low_freq_factor, b.low_freq_factor) && is_near(a.high_freq_factor, b.high_freq_factor) &&
                   is_near(a.fast_turns, b.fast_turns) && is_near(a.slow_turns, b.slow_turns) &&
                   a.passes_at_whole_pairs == b.passes_at_whole_pairs && is_near(a.growth, b.growth));
    note(keys, a.original_max_positions == b.original_max_positions && is_near(a.amplitude, b.amplitude) &&
                   are_near(a.short_factors, b.short_factors) && are_near(a.long_factors, b.long_factors));
  }

  void compare_experts() {
    const ExpertsConfig &a = one_.experts, &b = other_.experts;
    note("num_experts or num_local_experts", a.count == b.count);
    if (a.count == 0) return;
    note("num_experts_per_tok", a.chosen == b.chosen);
    note("moe_intermediate_size", a.d_ffn == b.d_ffn);
    note("norm_topk_prob", a.sums_to_one == b.sums_to_one && is_near(a.least_sum, b.least_sum) &&
                               is_near(a.added_to_sum, b.added_to_sum));
    note("scoring_func", a.score == b.score && a.choice_bias == b.choice_bias && a.router_bias == b.router_bias &&
                             a.precise_router == b.precise_router && is_near(a.nearness, b.nearness));
    note("mlp_bias or use_bias", a.mlp_biases == b.mlp_biases);
    note("n_group or topk_group",
         a.groups == b.groups && a.groups_chosen == b.groups_chosen && a.group_best == b.group_best);
    note("routed_scaling_factor", is_near(a.scale, b.scale));
    note("shared_expert_intermediate_size", a.shared == b.shared && a.shared_switch == b.shared_switch);
  }

  void compare_mixers() {
    const RecurrenceConfig &a = one_.recurrence, &b = other_.recurrence;
    if (std::ranges::count(a.layers, true) == 0 && std::ranges::count(b.layers, true) == 0) return;
    note("linear_num_key_heads or linear_num_value_heads",
         a.kind == b.kind && a.key_heads == b.key_heads && a.value_heads == b.value_heads);
    note("linear_key_head_dim or linear_value_head_dim", a.key_dim == b.key_dim && a.value_dim == b.value_dim);
    note("linear_conv_kernel_dim", a.taps == b.taps);
  }

  void compare_rest() {
    note("kv_lora_rank or q_lora_rank",
         one_.latent.rank == other_.latent.rank && one_.latent.query_rank == other_.latent.query_rank &&
             one_.latent.value_dim == other_.latent.value_dim && one_.latent.turned_dim == other_.latent.turned_dim &&
             is_near(one_.latent.norm_eps, other_.latent.norm_eps));
    note("alibi", are_near(one_.alibi_slopes, other_.alibi_slopes));
    same("the first position", &ModelConfig::first_position);
    const std::set<int64_t> ends(one_.eos_ids.begin(), one_.eos_ids.end());
    note("eos_token_id", ends.empty() || ends == std::set<int64_t>(other_.eos_ids.begin(), other_.eos_ids.end()));
  }

  const ModelConfig& one_;
  const ModelConfig& other_;
  std::vector<std::string> keys_;
};

}  // namespace

std::vector<std::string> differing_keys(const ModelConfig& one, const ModelConfig& other) {
  return Differences(one, other).find();
}

}  // namespace lancet
