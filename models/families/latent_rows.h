// Rows and keys that families with latent attention share (DeepSeek-V2 and what followed).
#pragma once

#include <initializer_list>

#include "config_reader.h"
#include "rows.h"

namespace lancet {

extern const Rows kLatentBlock;  ///< norms before attention and MLP, attention's projections and their norms

/// Llama's keys, and those of latent attention.
std::vector<std::string_view> latent_keys(std::initializer_list<std::string_view> more);

/// What latent attention is where config.json says nothing. A value_dim of 0: the hidden size's share of a head.
struct LatentDefaults {
  LatentConfig latent = {.rank = 512, .query_rank = 1536, .plain_dim = 128, .turned_dim = 64, .value_dim = 128};
  int64_t heads = 128;
  int64_t positions = 4096;
  double norm_eps = 1e-6;
};
/// Reads sizes, norms, rotary embedding, activation and latent attention.
void read_latent_fields(ConfigReader& keys, ModelConfig& config, const LatentDefaults& defaults = {});

}  // namespace lancet
