// The list of families. If no family reads a config.json, the nearest one is named in the message; of two equally near
// ones the first.
#pragma once

#include "lancet/models/families.h"

namespace lancet {

#define LANCET_FAMILIES                                                                                             \
  llama, mistral, mixtral, ministral, ministral3, qwen2, qwen3, qwen3_moe, phi3, phi, gemma, gemma2, gemma3,        \
      vaultgemma, olmo, olmo2, olmo3, gpt2, gpt_neo, gpt_bigcode, gptj, gpt_neox, stablelm, smollm3, granite,       \
      hyperclovax, cohere, cohere2, glm, glm4, nemotron, arcee, apertus, exaone4, starcoder2, helium, ernie4_5,     \
      seed_oss, hunyuan, cwm, jais2, opt, biogpt, nanochat, falcon, bloom, mpt, persimmon, qwen3_5, qwen3_5_moe,    \
      qwen3_next, qwen2_moe, olmoe, granite_moe, glm4_moe, ernie4_5_moe, phimoe, gpt_oss, deepseek_v2, deepseek_v3, \
      glm4_moe_lite, youtu, minicpm3, lfm2, lfm2_moe, bamba, falcon_h1, granite_hybrid, jamba, nemotron_h

extern const Family LANCET_FAMILIES;

}  // namespace lancet
