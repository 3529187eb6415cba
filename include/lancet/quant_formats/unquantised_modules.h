// A configuration that says of more modules that they are not quantised: of a checkpoint in which some matrices that
// were packed lie in full precision.
// Sources: transformers, quantizers/base.py (get_modules_to_not_convert), quantizers/quantizers_utils.py
// (should_convert_module); vLLM, quantization/ (fp8, bitsandbytes, awq); GPTQModel, quantization/config.py
// (dynamic_get); compressed-tensors, utils/match.py.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace lancet {

/// config.json's text with `modules` ("model.layers.3.mlp.down_proj") named as not quantised, in the list that the
/// method's programs look at: bitsandbytes `llm_int8_skip_modules`; AWQ, fp8 and FBGEMM `modules_to_not_convert` (and
/// `ignored_layers`, where a file of fp8 has it); compressed-tensors `ignore`; GPTQ an expression in `dynamic`, before
/// all others. Modules that a list names already are not named again. Everything else stays, and so does the order of
/// keys; the text is laid out as transformers writes it, two blanks a level.
///
/// Where a list of bitsandbytes or fp8 was absent, transformers leaves the head alone; a list takes the place of that.
/// So one that is made here names the head too, as any family's files or transformers call it.
///
/// `others`: modules that stay quantised. Programs compare names in the lists as beginnings, ends or parts of others: a
/// name that would take one of these with it is written as an expression that matches nothing else, which transformers
/// understands and vLLM does not.
///
/// A repository's quantize_config.json, of AutoGPTQ's time, is in the text where config.json had no settings
/// (checkpoint/checkpoint.h); an export does not copy it.
///
/// Throws: CheckpointError when the text is damaged, says nothing of quantisation or what is not understood, and where
/// the list cannot name a module without one of the others.
std::string with_unquantised(std::string_view config_json, std::span<const std::string> modules,
                             std::span<const std::string> others = {});

}  // namespace lancet
