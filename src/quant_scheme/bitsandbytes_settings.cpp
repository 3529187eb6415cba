// Source: transformers, utils/quantization_config.py, BitsAndBytesConfig.
#include "methods.h"

namespace lancet {
namespace {

constexpr std::string_view kHarmlessOfBitsAndBytes[] = {
    "bnb_4bit_compute_dtype",  // of products, not of the numbers
    "bnb_4bit_quant_storage",  // the tensors' own types say it
    "llm_int8_enable_fp32_cpu_offload", "llm_int8_threshold", "_load_in_4bit", "_load_in_8bit"};

}  // namespace

ModuleRules read_bitsandbytes(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfBitsAndBytes);
  const bool in_4_bits = keys.flag("load_in_4bit", keys.flag("_load_in_4bit", false));
  const bool in_8_bits = keys.flag("load_in_8bit", keys.flag("_load_in_8bit", false));
  if (in_4_bits == in_8_bits)
    keys.refuse("load_in_4bit", "expected either load_in_4bit or load_in_8bit to be true, and not both");
  keys.one_of("bnb_4bit_quant_type", "fp4", {"fp4", "nf4"});
  if (keys.flag("llm_int8_has_fp16_weight", false))
    keys.refuse("llm_int8_has_fp16_weight", "expected false, got true: such weights are not stored as int8");
  MatrixCode code{.packing = MatrixPacking::kBitsAndBytes8};
  if (in_4_bits)
    code = {.packing = MatrixPacking::kBitsAndBytes4,
            .bits = 4,
            .block = {1, 64},
            .nested = keys.flag("bnb_4bit_use_double_quant", false)};
  else
    keys.flag("bnb_4bit_use_double_quant", false);
  ModuleRules rules;
  add_rules(keys, "llm_int8_skip_modules", RuleText::kPatternOrEnd, std::nullopt, rules);
  rules.usual = code;
  return rules;
}

void leave_out_bitsandbytes(OrderedJson& settings, const LeftOut& left_out) {
  add_to_list(settings, "llm_int8_skip_modules", RuleText::kPatternOrEnd, kHeads, left_out);
}

}  // namespace lancet
