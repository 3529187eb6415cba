// What config.json of an architecture has beside what its metadata says key by key.
#pragma once

#include "architectures.h"

namespace lancet {

void complete_llama(const GgufFile& file, OrderedJson& config);
void complete_silu(const GgufFile& file, OrderedJson& config);
void complete_qwen3(const GgufFile& file, OrderedJson& config);
void complete_qwen2_moe(const GgufFile& file, OrderedJson& config);
void complete_qwen3_moe(const GgufFile& file, OrderedJson& config);
void complete_gemma(const GgufFile& file, OrderedJson& config);
void complete_gemma2(const GgufFile& file, OrderedJson& config);
void complete_gemma3(const GgufFile& file, OrderedJson& config);
void complete_phi3(const GgufFile& file, OrderedJson& config);
void complete_glm4(const GgufFile& file, OrderedJson& config);
void complete_starcoder2(const GgufFile& file, OrderedJson& config);
void complete_stablelm(const GgufFile& file, OrderedJson& config);
void complete_nemotron(const GgufFile& file, OrderedJson& config);
void complete_cohere(const GgufFile& file, OrderedJson& config);
void complete_cohere2(const GgufFile& file, OrderedJson& config);
void complete_exaone4(const GgufFile& file, OrderedJson& config);
void complete_phi2(const GgufFile& file, OrderedJson& config);
void complete_gpt2(const GgufFile& file, OrderedJson& config);
void complete_gpt_neox(const GgufFile& file, OrderedJson& config);
void complete_gptj(const GgufFile& file, OrderedJson& config);
void complete_falcon(const GgufFile& file, OrderedJson& config);
void complete_gpt_oss(const GgufFile& file, OrderedJson& config);
void complete_qwen35(const GgufFile& file, OrderedJson& config);
void complete_deepseek2(const GgufFile& file, OrderedJson& config);
void complete_deepseek3(const GgufFile& file, OrderedJson& config);
void complete_lfm2(const GgufFile& file, OrderedJson& config);

}  // namespace lancet
