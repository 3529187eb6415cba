// AWQ. `qweight` [columns, rows / 8], `qzeros` [groups, rows / 8], `scales` [groups, rows]; words of 32 bits, low bits
// first. Source: transformers, utils/quantization_config.py, AwqConfig.
#include "formats.h"
#include "gptq_keys.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

ModuleRules read_awq(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfGptq);
  // GPTQ's files have them with other meanings; nothing reads them for AWQ.
  constexpr std::string_view kOfBoth[] = {"desc_act", "sym", "dynamic", "pack_dtype"};
  keys.harmless(kOfBoth);
  MatrixCode code{.packing = MatrixPacking::kAwq, .bits = keys.whole("bits", keys.whole("w_bit", 4))};
  if (code.bits != 4) keys.problem(keys.has("bits") ? "bits" : "w_bit", "4");
  code.block = {1, keys.group_size("group_size", keys.group_size("q_group_size", 128))};
  code.zeros = ZeroPoints::kStored;
  code.symmetric = false;
  if (!keys.flag("zero_point", true)) keys.problem("zero_point", "true");
  keys.one_of("version", keys.one_of("format", "gemm", {"gemm"}), {"gemm"});
  if (lowered(keys.text("backend", "")) == "llm-awq")
    keys.problem("backend", "another than llm-awq, whose layout is its own");
  ModuleRules rules;
  add_rules(keys, "modules_to_not_convert", RuleText::kPart, std::nullopt, rules);
  rules.usual = code;
  return rules;
}

void exclude_awq(OrderedJson& settings, const ExcludedModules& excluded) {
  // a list here is added to the modules that are never quantised
  add_to_list(settings, "modules_to_not_convert", RuleText::kPart, {}, excluded);
}

void find_awq(PartFinder& finder, PackedSpec& spec) {
  const int64_t groups = blocks_of(spec.columns, spec.code.block.columns);
  const std::string module = finder.module();
  if (!finder.fills_words(spec.rows, "rows")) return;
  if (spec.columns % 2 != 0)
    return finder.problem(spec.name, cat("expected an even number of columns, got ", spec.columns));
  finder.need({PartRole::kCodes, module + ".qweight", {DType::kI32}, {{spec.columns, spec.rows / 8}}});
  finder.need({PartRole::kZeros, module + ".qzeros", {DType::kI32}, {{groups, spec.rows / 8}}});
  finder.need({PartRole::kScales, module + ".scales", kScaleTypes, {{groups, spec.rows}}});
}

constexpr QuantMethod kAwqMethods[] = {{.name = "awq", .read = read_awq, .exclude = exclude_awq}};
constexpr std::string_view kAwqMarks[] = {".qweight"};
constexpr TensorLayout kAwqLayouts[] = {{.packing = MatrixPacking::kAwq,
                                         .meaning = "AWQ: .qweight with .qzeros and .scales",
                                         .marks = kAwqMarks,
                                         .find = find_awq,
                                         .bytes = bytes_with_half_scales}};

}  // namespace

constexpr QuantFormat kAwqFormat{.methods = kAwqMethods, .layouts = kAwqLayouts};

}  // namespace lancet
