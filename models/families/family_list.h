// The families' files, one function each.
#pragma once

#include "lancet/models/families.h"

namespace lancet {

#define LANCET_FAMILIES(ROW)                                                                                        \
  ROW(llama)                                                                                                        \
  ROW(mistral) ROW(mixtral) ROW(ministral) ROW(ministral3) ROW(qwen2) ROW(qwen3) ROW(qwen3_moe) ROW(phi3) ROW(phi)  \
      ROW(gemma) ROW(gemma2) ROW(gemma3) ROW(vaultgemma) ROW(olmo) ROW(olmo2) ROW(olmo3) ROW(gpt2) ROW(gpt_neo)     \
          ROW(gpt_bigcode) ROW(gptj) ROW(gpt_neox) ROW(stablelm) ROW(smollm3) ROW(granite) ROW(hyperclovax)         \
              ROW(cohere) ROW(cohere2) ROW(glm) ROW(glm4) ROW(nemotron) ROW(arcee) ROW(apertus) ROW(exaone4)        \
                  ROW(starcoder2) ROW(helium) ROW(ernie4_5) ROW(seed_oss) ROW(hunyuan) ROW(cwm) ROW(jais2) ROW(opt) \
                      ROW(biogpt) ROW(nanochat) ROW(falcon) ROW(bloom) ROW(mpt) ROW(persimmon)

#define LANCET_DECLARE(NAME) Family NAME();
LANCET_FAMILIES(LANCET_DECLARE)
#undef LANCET_DECLARE

}  // namespace lancet
