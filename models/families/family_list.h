// The families' files, one function each.
#pragma once

#include "lancet/models/families.h"

namespace lancet {

Family gemma();
Family gemma2();
Family gemma3();
Family gpt2();
Family gptj();
Family gpt_neox();
Family llama();
Family mistral();
Family mixtral();
Family olmo2();
Family phi3();
Family qwen2();
Family qwen3();
Family qwen3_moe();
Family stablelm();

}  // namespace lancet
