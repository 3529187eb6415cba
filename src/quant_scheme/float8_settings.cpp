// Sources: transformers, utils/quantization_config.py, FineGrainedFP8Config and FbgemmFp8Config; vLLM,
// quantization/fp8.py (ignored_layers, one scale a matrix).
#include "methods.h"

namespace lancet {
namespace {

constexpr std::string_view kHarmlessOfFloat8[] = {
    "activation_scheme", "activation_scale_ub", "dequantize", "kv_cache_scheme",
    "scale_fmt",  // of the values of scales that are stored as f32 anyway
};

}  // namespace

ModuleRules read_float8(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfFloat8);
  keys.one_of("fmt", "e4m3", {"e4m3", "float8_e4m3fn"});
  ModuleRules rules;
  rules.usual = {.packing = MatrixPacking::kFloat8,
                 .block = keys.block("weight_block_size").value_or(ScaleBlock{0, 0})};
  if (const OrderedJson* others = keys.find("modules_to_convert"); others != nullptr && !others->empty())
    keys.problem("modules_to_convert", "no modules beside the linear layers");
  add_rules(keys, "modules_to_not_convert", RuleText::kPatternOrEnd, std::nullopt, rules);
  add_rules(keys, "ignored_layers", RuleText::kPatternOrEnd, std::nullopt, rules);
  return rules;
}

ModuleRules read_fbgemm_float8(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfFloat8);
  ModuleRules rules;
  rules.usual = {.packing = MatrixPacking::kFloat8, .block = {1, 0}};
  add_rules(keys, "modules_to_not_convert", RuleText::kPatternOrEnd, std::nullopt, rules);
  return rules;
}

void leave_out_float8(OrderedJson& settings, const LeftOut& left_out) {
  add_to_list(settings, "modules_to_not_convert", RuleText::kPatternOrEnd, kHeads, left_out);
  // vLLM's own list, which it reads in place of the other.
  if (const auto own = settings.find("ignored_layers"); own != settings.end() && !own->empty())
    add_to_list(settings, "ignored_layers", RuleText::kPatternOrEnd, {}, left_out);
}

void leave_out_fbgemm_float8(OrderedJson& settings, const LeftOut& left_out) {
  add_to_list(settings, "modules_to_not_convert", RuleText::kPatternOrEnd, kHeads, left_out);
}

}  // namespace lancet
