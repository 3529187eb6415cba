// MiniCPM3 (OpenBMB 2024): latent attention and dense MLPs, with multipliers for embeddings, blocks and logits.
// Youtu-LLM (Tencent 2025) has this block without multipliers.
#include <cmath>

#include "families/config_reader.h"
#include "families/family_list.h"
#include "families/latent_rows.h"
#include "families/rows.h"

namespace lancet {
namespace {

void read_minicpm3(ConfigReader& keys, ModelConfig& config) {
  const LatentConfig latent{.rank = 256, .query_rank = 768, .plain_dim = 64, .turned_dim = 32};
  read_latent_fields(keys, config, {.latent = latent, .heads = 40, .positions = 32768, .norm_eps = 1e-5});
  config.rope.pairs = RopeConfig::Pairs::kHalves;
  config.embedding_scale = keys.above_zero("scale_emb", 12);
  config.attention_out_scale = config.mlp_out_scale =
      keys.above_zero("scale_depth", 1.4) / std::sqrt(static_cast<double>(config.n_layers));
  config.logits_scale = keys.above_zero("dim_model_base", 256) / static_cast<double>(config.d_model);
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
  if (keys.flag("mlp_bias")) keys.problem("mlp_bias", "false, as published models of this family have it");
}

void read_youtu(ConfigReader& keys, ModelConfig& config) {
  read_latent_fields(keys, config, {.heads = 16, .positions = 131072});
  config.tied_embeddings = keys.flag_or_true("tie_word_embeddings");
}

}  // namespace

constinit const Family minicpm3 = {
    .name = "MiniCPM3",
    .architectures = {"MiniCPM3ForCausalLM"},
    .model_types = {"minicpm3"},
    .understood_keys = latent_keys({"scale_emb", "scale_depth", "dim_model_base", "mlp_bias"}),
    .harmless_keys = {"logits_scaling"},
    .weights = rows_of({kLlamaOutside, kLatentBlock, kLlamaMlp}),
    .ignored_tensors = kLlamaIgnoredTensors,
    .read = read_minicpm3};

constinit const Family youtu = {.name = "Youtu-LLM",
                                .architectures = {"YoutuForCausalLM"},
                                .model_types = {"youtu"},
                                .understood_keys = latent_keys({}),
                                .harmless_keys = {"embedding_initializer_range"},
                                .weights = rows_of({kLlamaOutside, kLatentBlock, kLlamaMlp}),
                                .ignored_tensors = kLlamaIgnoredTensors,
                                .read = read_youtu};

}  // namespace lancet
