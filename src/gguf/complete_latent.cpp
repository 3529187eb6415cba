// config.json of models with latent attention.
#include "complete_config.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_layout.h"

namespace lancet {
namespace {

/// Returns the size of a head's key or value. Older files say it where newer ones have the absorbed size.
int64_t size_of_head(const OrderedJson& config, std::string_view newer, std::string_view older) {
  const std::string key(config.contains(newer) ? newer : older);
  return config.value(key, int64_t{0});
}

void add_latent_sizes(const GgufFile& file, OrderedJson& config) {
  config["hidden_act"] = "silu";
  config["num_key_value_heads"] = config["num_attention_heads"];
  if (!config.contains("q_lora_rank")) config["q_lora_rank"] = nullptr;
  for (const char* key : {"attention.kv_lora_rank", "rope.dimension_count", "expert_count"})
    if (!file.has(own_key(file, key)))
      file.refuse(own_key(file, key), "a number, as DeepSeek's models have it", "none: take the model's safetensors");
  const int64_t turned = *file.whole(own_key(file, "rope.dimension_count"));
  const int64_t key_size = size_of_head(config, kLatentKeySize, kAbsorbedKeySize);
  if (key_size <= turned)
    file.refuse(own_key(file, "attention.key_length_mla"), cat("more than rope.dimension_count, ", turned),
                cat(key_size));
  config["qk_rope_head_dim"] = turned;
  config["qk_nope_head_dim"] = key_size - turned;
  config["v_head_dim"] = size_of_head(config, kLatentValueSize, kAbsorbedValueSize);
  for (const std::string_view key :
       {kLatentKeySize, kLatentValueSize, kAbsorbedKeySize, kAbsorbedValueSize, kGatingFunction})
    config.erase(std::string(key));
  for (const char* key : {"n_group", "topk_group"})
    if (!config.contains(key)) config[key] = 1;
  if (!config.contains("routed_scaling_factor")) config["routed_scaling_factor"] = 1.0;
  if (!config.contains("norm_topk_prob")) config["norm_topk_prob"] = false;
}

/// Published models have the same share for scores and for the rotary embedding. Metadata has a tenth of it.
void add_shares(const GgufFile& file, OrderedJson& config) {
  const auto tenth = file.number(own_key(file, "rope.scaling.yarn_log_multiplier"));
  if (!config.contains("rope_scaling") || !tenth) return;
  for (const char* key : {"mscale", "mscale_all_dim"}) config["rope_scaling"][key] = 10 * *tenth;
}

}  // namespace

void complete_deepseek2(const GgufFile& file, OrderedJson& config) {
  if (const auto score = config.value(std::string(kGatingFunction), kSoftmaxGating); score != kSoftmaxGating)
    file.refuse(own_key(file, "expert_gating_func"), "1 (softmax) or 2 (sigmoid)",
                cat(score, ": take the model's safetensors"));
  add_latent_sizes(file, config);
  add_shares(file, config);
  config["topk_method"] = config.value("n_group", 1) > 1 ? "group_limited_greedy" : "greedy";
}

void complete_deepseek3(const GgufFile& file, OrderedJson& config) {
  add_latent_sizes(file, config);
  add_shares(file, config);
}

}  // namespace lancet
