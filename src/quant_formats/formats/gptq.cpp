// GPTQ. `qweight` [columns * bits / 32, rows], `qzeros` [groups, rows * bits / 32], `scales` [groups, rows], `g_idx`
// [columns]; words of 32 bits, low bits first. Sources: transformers, utils/quantization_config.py, GPTQConfig;
// GPTQModel, quantization/config.py (dynamic).
#include "formats.h"
#include "gptq_keys.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

void check_bits(SchemeKeys& keys, std::string_view key, int64_t bits) {
  if (bits != 2 && bits != 3 && bits != 4 && bits != 8) keys.problem(key, "2, 3, 4 or 8");
}

/// Reads the code from the settings, or from those of some modules, for which `usual` has the other values.
MatrixCode gptq_code(SchemeKeys& keys, const MatrixCode& usual) {
  MatrixCode code = usual;
  code.bits = keys.whole("bits", usual.bits);
  check_bits(keys, "bits", code.bits);
  code.block.columns = keys.group_size("group_size", usual.block.columns);
  code.ordered = keys.flag("desc_act", usual.ordered);
  code.symmetric = keys.flag("sym", usual.symmetric);
  return code;
}

/// Reads `dynamic`: expressions for modules. "-:" is before those of modules that are not quantised.
void read_dynamic(SchemeKeys& keys, ModuleRules& rules) {
  const OrderedJson* dynamic = keys.find("dynamic");
  if (dynamic == nullptr || *dynamic == OrderedJson(false)) return;
  if (!dynamic->is_object()) return keys.problem("dynamic", "an object");
  for (const auto& [key, settings] : dynamic->items()) {
    const bool excludes = key.starts_with("-:");
    std::optional<MatrixCode> code;
    if (!excludes && settings.is_object()) {
      SchemeKeys own(settings, cat(keys.prefix(), "dynamic.", printable(key), "."), keys.problems());
      own.harmless(kHarmlessOfGptq);
      code = gptq_code(own, *rules.usual);
      own.finish();
    } else if (!excludes) {
      keys.refuse("dynamic", cat(printable(key), ": expected an object of settings, got ", json_text(settings)));
    }
    try {
      rules.rules.emplace_back(RuleText::kPattern, excludes || key.starts_with("+:") ? key.substr(2) : key, code);
    } catch (const CheckpointError& error) {
      keys.refuse("dynamic", error.what());
    }
  }
}

ModuleRules read_gptq(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfGptq);
  ModuleRules rules;
  if (!keys.has("bits")) keys.problem("bits", "2, 3, 4 or 8");
  rules.usual = gptq_code(keys, {.packing = MatrixPacking::kGptq, .bits = 4, .block = {1, 128}});
  const std::string format = keys.one_of("format", "gptq", {"gptq", "gptq_v2"});
  const std::string stored = keys.one_of("checkpoint_format", format, {"gptq", "gptq_v2"});
  rules.usual->zeros = stored == "gptq" ? ZeroPoints::kStoredLessOne : ZeroPoints::kStored;
  keys.one_of("pack_dtype", "int32", {"int32"});
  if (keys.flag("is_marlin_format", false)) keys.problem("is_marlin_format", "false: Marlin's layout is not read");
  read_dynamic(keys, rules);
  return rules;
}

void exclude_gptq(OrderedJson& settings, const ExcludedModules& excluded) {
  OrderedJson dynamic = OrderedJson::object();  // the first matching expression applies
  for (const std::string& module : excluded.modules) dynamic["-:" + exact_expression(module)] = OrderedJson::object();
  OrderedJson& stored = settings["dynamic"];
  if (stored.is_object())
    for (const auto& [expression, value] : stored.items())
      if (!dynamic.contains(expression)) dynamic[expression] = value;
  stored = std::move(dynamic);
}

void find_gptq(PartFinder& finder, PackedSpec& spec) {
  const int64_t bits = spec.code.bits, groups = blocks_of(spec.columns, spec.code.block.columns);
  const std::string module = finder.module();
  if (!finder.fills_words(spec.columns, "columns") || !finder.fills_words(spec.rows, "rows")) return;
  finder.need({PartRole::kCodes, module + ".qweight", {DType::kI32}, {{spec.columns * bits / 32, spec.rows}}});
  finder.need({PartRole::kZeros, module + ".qzeros", {DType::kI32}, {{groups, spec.rows * bits / 32}}});
  finder.need({PartRole::kScales, module + ".scales", kScaleTypes, {{groups, spec.rows}}});
  finder.take_order(module + ".g_idx", "desc_act is true");
}

constexpr QuantMethod kGptqMethods[] = {{.name = "gptq", .read = read_gptq, .exclude = exclude_gptq}};
constexpr std::string_view kGptqMarks[] = {".qweight"};
constexpr TensorLayout kGptqLayouts[] = {{.packing = MatrixPacking::kGptq,
                                          .meaning = "GPTQ: .qweight with .qzeros and .scales",
                                          .marks = kGptqMarks,
                                          .find = find_gptq,
                                          .bytes = bytes_with_half_scales}};

}  // namespace

constexpr QuantFormat kGptqFormat{.methods = kGptqMethods, .layouts = kGptqLayouts};

}  // namespace lancet
