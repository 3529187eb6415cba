// E4M3, one byte per number, in the matrix's own shape, with one scale for all numbers, for each row, or for each
// block. Sources: transformers, utils/quantization_config.py, FineGrainedFP8Config and FbgemmFp8Config; vLLM,
// quantization/fp8.py (ignored_layers, one scale for a matrix).
#include "formats.h"

namespace lancet {
namespace {

constexpr std::string_view kHarmlessOfFloat8[] = {
    "activation_scheme", "activation_scale_ub", "dequantize", "kv_cache_scheme",
    "scale_fmt",  // about the values of scales, which are stored as f32 anyway
};

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

void exclude_float8(OrderedJson& settings, const ExcludedModules& excluded) {
  add_to_list(settings, "modules_to_not_convert", RuleText::kPatternOrEnd, kHeads, excluded);
  // vLLM's own list, which it reads instead of the other one
  if (const auto own = settings.find("ignored_layers"); own != settings.end() && !own->empty())
    add_to_list(settings, "ignored_layers", RuleText::kPatternOrEnd, {}, excluded);
}

void exclude_fbgemm_float8(OrderedJson& settings, const ExcludedModules& excluded) {
  add_to_list(settings, "modules_to_not_convert", RuleText::kPatternOrEnd, kHeads, excluded);
}

void find_float8(PartFinder& finder, PackedSpec& spec) {
  const std::string module = finder.module();
  finder.need({PartRole::kCodes, spec.name, {DType::kF8E4M3}, {{spec.rows, spec.columns}}});
  const std::string inverse = module + ".weight_scale_inv";  // despite its name, the numbers are multiplied by it
  const std::string plain = module + ".weight_scale";
  const bool has_blocks = spec.code.block.rows > 1 && !spec.code.in_scale_type;
  const std::string& name = finder.contains(inverse) || (has_blocks && !finder.contains(plain)) ? inverse : plain;
  std::vector<std::vector<int64_t>> shapes = scale_shapes(spec, spec.code.block);
  // If the configuration has no blocks, the tensor's shape tells whether there is one scale, or one for each row.
  if (spec.code.block.rows == 0 && spec.code.block.columns == 0) {
    const std::vector<std::vector<int64_t>> by_row = scale_shapes(spec, {1, 0});
    shapes.insert(shapes.end(), by_row.begin(), by_row.end());
  }
  const TensorInfo* scales = finder.need({PartRole::kScales, name, {DType::kF32, DType::kBF16, DType::kF16}, shapes});
  finder.take_idle_zeros(module + ".weight_zero_point");
  if (scales != nullptr && spec.code.block.rows == 0 && spec.rows > 1 && !scales->shape.empty() &&
      scales->shape.front() == spec.rows)
    spec.code.block = {1, 0};
}

constexpr QuantMethod kFloat8Methods[] = {
    {.name = "fp8", .read = read_float8, .exclude = exclude_float8},
    {.name = "fbgemm_fp8", .read = read_fbgemm_float8, .exclude = exclude_fbgemm_float8}};
constexpr TensorLayout kFloat8Layouts[] = {{.packing = MatrixPacking::kFloat8,
                                            .meaning = "fp8: .weight of type F8_E4M3 with its scale",
                                            .type = DType::kF8E4M3,
                                            .find = find_float8,
                                            .bytes = bytes_with_float_scales}};

}  // namespace

constexpr QuantFormat kFloat8Format{.methods = kFloat8Methods, .layouts = kFloat8Layouts};

}  // namespace lancet
