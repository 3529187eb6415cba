// MXFP4, the format of gpt-oss's experts: `X_blocks` U8 [experts, rows, columns / 32, 16], two numbers of E2M1 in a
// byte, the first in the low half; `X_scales` U8 [experts, rows, columns / 32], exponents (E8M0). Sources:
// transformers, integrations/mxfp4.py (_convert_moe_packed_tensors), utils/quantization_config.py (Mxfp4Config); OCP
// Microscaling Formats 1.0, 5.3 and 6.3.
#include "formats.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr int64_t kBlock = 32;
constexpr std::string_view kHarmlessOfMxfp4[] = {"dequantize"};  // what a program does with the numbers
/// transformers and vLLM only look for experts. A block of experts is either quantised completely or not at all.
constexpr std::string_view kExpertModules = R"(.*\.mlp(\.experts(\..*)?)?$)";

ModuleRules read_mxfp4(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfMxfp4);
  ModuleRules rules;
  add_rules(keys, "modules_to_not_convert", RuleText::kPatternOrEnd, std::nullopt, rules);
  rules.rules.emplace_back(RuleText::kPattern, std::string(kExpertModules),
                           MatrixCode{.packing = MatrixPacking::kMxfp4, .bits = 4, .block = {1, kBlock}});
  return rules;
}

void exclude_mxfp4(OrderedJson& settings, const ExcludedModules& excluded) {
  add_to_list(settings, "modules_to_not_convert", RuleText::kPatternOrEnd, kHeads, excluded);
}

/// Returns "model.layers.3.mlp" for "model.layers.3.mlp.experts.down_proj": transformers also computes the router of
/// such a block differently.
std::string_view unit_of_experts(std::string_view module) { return module.substr(0, module.rfind(".experts")); }

void find_mxfp4(PartFinder& finder, PackedSpec& spec) {
  if (spec.columns % kBlock != 0)
    return finder.problem(spec.name, cat("expected a multiple of ", kBlock, " columns, got ", spec.columns));
  const int64_t blocks = spec.columns / kBlock;
  finder.need(
      {PartRole::kCodes, spec.name + "_blocks", {DType::kU8}, {{spec.slice.matrices, spec.rows, blocks, kBlock / 2}}});
  finder.need({PartRole::kScales, spec.name + "_scales", {DType::kU8}, {{spec.slice.matrices, spec.rows, blocks}}});
}

int64_t mxfp4_bytes(const MatrixCode& code, int64_t rows, int64_t columns) {
  constexpr int64_t kTableBytes = 256 * 2 * 2;
  return rows * blocks_of(columns, 2) + rows * blocks_of(columns, code.block.columns) + kTableBytes;
}

constexpr QuantMethod kMxfp4Methods[] = {
    {.name = "mxfp4", .read = read_mxfp4, .exclude = exclude_mxfp4, .unit = unit_of_experts}};
constexpr std::string_view kMxfp4Marks[] = {"_blocks", "_scales"};
constexpr TensorLayout kMxfp4Layouts[] = {{.packing = MatrixPacking::kMxfp4,
                                           .meaning = "MXFP4: _blocks with _scales",
                                           .marks = kMxfp4Marks,
                                           .find = find_mxfp4,
                                           .bytes = mxfp4_bytes,
                                           .holds_experts = true}};

}  // namespace

constexpr QuantFormat kMxfp4Format{.methods = kMxfp4Methods, .layouts = kMxfp4Layouts};

}  // namespace lancet
