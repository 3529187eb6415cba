// GPT-Neo (EleutherAI 2021): GPT-2's block with a window in every other layer and scores that are not scaled.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/rows.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr WeightRow kNeoAttention[] = {{kQuery, "transformer.h.{}.attn.attention.q_proj.weight"},
                                       {kKey, "transformer.h.{}.attn.attention.k_proj.weight"},
                                       {kValue, "transformer.h.{}.attn.attention.v_proj.weight"},
                                       {kAttnOut, "transformer.h.{}.attn.attention.out_proj.weight"},
                                       {kAttnOutBias, "transformer.h.{}.attn.attention.out_proj.bias"}};

constexpr SizeKeys kNeoSizes{.layers = "num_layers", .heads = "num_heads", .ffn_of_model = 4};

/// Reads lists of types, each with a count: [[["global", "local"], 12]].
std::vector<bool> local_layers(ConfigReader& keys, int64_t n_layers) {
  static const nlohmann::json kUsualTypes = nlohmann::json::parse(R"([[["global", "local"], 12]])");
  const nlohmann::json* types = keys.find("attention_types");
  std::vector<bool> local;
  const auto add = [&](const nlohmann::json& item) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_array() || !item[1].is_number_integer()) return false;
    if (item[0].empty()) return false;
    for (int64_t i = 0; i < item[1].get<int64_t>() && std::ssize(local) <= n_layers; ++i)
      for (const nlohmann::json& type : item[0]) {
        if (type != "global" && type != "local") return false;
        local.push_back(type == "local");
      }
    return true;
  };
  const nlohmann::json& read = types == nullptr ? kUsualTypes : *types;
  if (!read.is_array() || !std::ranges::all_of(read, add) || std::ssize(local) != n_layers)
    keys.problem("attention_types", cat("lists of global and local, for each of the ", n_layers, " layers"));
  local.resize(static_cast<size_t>(n_layers));
  return local;
}

void read_gpt_neo(ConfigReader& keys, ModelConfig& config) {
  read_sizes(keys, config, kNeoSizes);
  read_gpt_fields(keys, config);
  config.attention_scale = 1;
  config.activation = read_activation(keys, "activation_function", "gelu_new");
  config.attention_out_bias = config.mlp_bias = true;
  config.window = keys.positive("window_size", 256);
  config.windowed = local_layers(keys, config.n_layers);
}

}  // namespace

constinit const Family gpt_neo = {
    .name = "GPT-Neo",
    .architectures = {"GPTNeoForCausalLM"},
    .model_types = {"gpt_neo"},
    .understood_keys = {"hidden_size", "num_layers", "num_heads", "intermediate_size", "max_position_embeddings",
                        "layer_norm_epsilon", "activation_function", "attention_types", "window_size"},
    .harmless_keys = {"attention_layers", "resid_dropout", "embed_dropout", "classifier_dropout",
                      "gradient_checkpointing", "summary_type", "summary_use_proj", "summary_activation",
                      "summary_proj_to_labels", "summary_first_dropout", "tokenizer_class"},
    .weights = rows_of({kGptBeforeAttention, kNeoAttention, kGptAfterAttention}),
    .ignored_tensors = {"transformer.h.{}.attn.attention.bias", "transformer.h.{}.attn.attention.masked_bias"},
    .read = read_gpt_neo};

}  // namespace lancet
