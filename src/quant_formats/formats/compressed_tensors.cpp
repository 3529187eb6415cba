// compressed-tensors. Whole numbers in words of 32 bits, low bits first: `weight_packed` [rows, columns * bits / 32],
// `weight_scale` [rows, groups], `weight_zero_point` [rows * bits / 32, groups]. int8: one byte per number, in the
// matrix's own shape. Floats of 8 bits are read as in float8.cpp. Sources: compressed-tensors,
// quantization/quant_config.py, quant_scheme.py, quant_args.py, utils/match.py.
#include <cstring>

#include "formats.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr std::string_view kHarmlessOfCompressed[] = {
    "kv_cache_scheme",         "global_compression_ratio", "version", "run_compressed", "dequantize",
    "use_optimized_inference", "quantization_status"};  // the tensors show what they are
constexpr std::string_view kHarmlessOfGroup[] = {"input_activations", "output_activations", "name"};
constexpr std::string_view kHarmlessOfWeights[] = {"observer", "observer_kwargs", "scale_dtype", "zp_dtype"};
constexpr std::string_view kLinear = "Linear";
constexpr std::string_view kExpression = "re:";

RuleText kind_of(std::string_view text) { return text.starts_with(kExpression) ? RuleText::kPattern : RuleText::kName; }

std::string without_mark(const std::string& text) {
  return text.starts_with(kExpression) ? text.substr(kExpression.size()) : text;
}

/// Returns the block of numbers that share a scale.
ScaleBlock scale_block(SchemeKeys& weights) {
  const int64_t group = weights.group_size("group_size", 0);
  const std::optional<ScaleBlock> block = weights.block("block_structure");
  const std::string usual = group > 0 ? "group" : weights.has("group_size") ? "channel" : "tensor";
  const std::string strategy = weights.one_of("strategy", usual, {"tensor", "channel", "group", "block"});
  if (strategy == "group" && group == 0) weights.problem("group_size", "a number above 0, since the strategy is group");
  if (strategy == "block" && !block) weights.problem("block_structure", "two numbers, since the strategy is block");
  if (strategy == "block") return block.value_or(ScaleBlock{});
  return strategy == "tensor" ? ScaleBlock{0, 0} : ScaleBlock{1, strategy == "group" ? group : 0};
}

/// Returns how a format stores numbers of a type.
std::optional<MatrixPacking> packing_of(const std::string& format, bool is_float, int64_t bits) {
  const bool is_naive = format == "naive-quantized";
  if (format == "pack-quantized" && !is_float && (bits == 4 || bits == 8)) return MatrixPacking::kCompressedPacked;
  if ((format == "int-quantized" || is_naive) && !is_float && bits == 8) return MatrixPacking::kCompressedInt8;
  if ((format == "float-quantized" || is_naive) && is_float && bits == 8) return MatrixPacking::kFloat8;
  return std::nullopt;
}

MatrixCode weights_code(const OrderedJson& object, const std::string& prefix, const std::string& format,
                        SchemeProblems& problems) {
  SchemeKeys weights(object, prefix, problems);
  weights.harmless(kHarmlessOfWeights);
  MatrixCode code{.bits = weights.whole("num_bits", 8), .symmetric = weights.flag("symmetric", true)};
  const bool is_float = weights.one_of("type", "int", {"int", "float"}) == "float";
  const std::optional<MatrixPacking> packing = packing_of(format, is_float, code.bits);
  if (!packing)
    weights.refuse("num_bits", cat("expected 4 or 8 whole bits as pack-quantized, 8 whole bits as int-quantized or 8 ",
                                   "bits of a float as float-quantized, got ", code.bits, " bits of ",
                                   is_float ? "a float" : "a whole number", " as ", format,
                                   ": this version reads no other format"));
  code.packing = packing.value_or(MatrixPacking::kFloat8);
  code.block = scale_block(weights);
  code.in_scale_type = true;
  code.zeros = code.symmetric ? ZeroPoints::kNone : ZeroPoints::kStored;
  if (is_float && !code.symmetric) weights.problem("symmetric", "true for floats");
  if (const OrderedJson* value = weights.find("dynamic"); value != nullptr && *value != OrderedJson(false))
    weights.problem("dynamic", "false for weights");
  if (const OrderedJson* value = weights.find("actorder"); value != nullptr && *value != OrderedJson(false)) {
    const std::string order = weights.one_of("actorder", "weight", {"weight", "static", "group", "dynamic"});
    code.ordered = order == "group" || order == "dynamic";
  }
  weights.finish();
  return code;
}

/// The rules of all groups. Names come first, then expressions, then what applies to all other modules.
struct Groups {
  std::vector<ModuleRule> names = {}, expressions = {};
  std::optional<MatrixCode> usual = {};
};

void add_group(const OrderedJson& object, const std::string& prefix, const std::string& format, SchemeKeys& keys,
               Groups& groups) {
  SchemeKeys group(object, prefix, keys.problems());
  group.harmless(kHarmlessOfGroup);
  const std::string own_format = group.text("format", format);
  const OrderedJson* weights = group.find("weights");
  std::optional<MatrixCode> code;
  if (weights != nullptr && weights->is_object())
    code = weights_code(*weights, prefix + "weights.", own_format, keys.problems());
  else if (weights != nullptr)
    group.problem("weights", "an object");
  for (const std::string& target : group.texts("targets")) {
    if (target == kLinear) {
      if (!groups.usual) groups.usual = code;
      continue;
    }
    try {
      auto& list = kind_of(target) == RuleText::kName ? groups.names : groups.expressions;
      list.emplace_back(kind_of(target), without_mark(target), code);
    } catch (const CheckpointError& error) {
      group.refuse("targets", error.what());
    }
  }
  group.finish();
}

/// Refuses transforms that lancet does not undo.
void check_transforms(SchemeKeys& keys) {
  const OrderedJson* sparsity = keys.find("sparsity_config");
  if (sparsity != nullptr && sparsity->is_object() && !sparsity->empty() &&
      sparsity->value("format", OrderedJson()) != OrderedJson("dense"))
    keys.problem("sparsity_config", "null, or the format dense");
  for (const std::string_view key : {"transform_config", "moe_sparsity_config"})
    if (const OrderedJson* value = keys.find(key); value != nullptr && !value->empty()) keys.problem(key, "null");
}

ModuleRules read_compressed_tensors(SchemeKeys& keys) {
  keys.harmless(kHarmlessOfCompressed);
  check_transforms(keys);
  const std::string format = keys.text("format", "dense");
  ModuleRules rules;
  for (const std::string& text : keys.texts("ignore")) {
    try {
      rules.rules.emplace_back(kind_of(text), without_mark(text), std::nullopt);
    } catch (const CheckpointError& error) {
      keys.refuse("ignore", error.what());
    }
  }
  const OrderedJson* list = keys.find("config_groups");
  if (list == nullptr || !list->is_object() || list->empty()) keys.problem("config_groups", "an object of groups");
  Groups groups;
  if (list != nullptr && list->is_object())
    for (const auto& [name, group] : list->items()) {
      const std::string prefix = cat(keys.prefix(), "config_groups.", printable(name), ".");
      if (group.is_object())
        add_group(group, prefix, format, keys, groups);
      else
        keys.refuse("config_groups", cat(printable(name), ": expected an object, got ", json_text(group)));
    }
  rules.rules.insert(rules.rules.end(), groups.names.begin(), groups.names.end());
  rules.rules.insert(rules.rules.end(), groups.expressions.begin(), groups.expressions.end());
  rules.usual = groups.usual;
  return rules;
}

void exclude_compressed_tensors(OrderedJson& settings, const ExcludedModules& excluded) {
  add_to_list(settings, "ignore", RuleText::kName, {}, excluded);
}

void find_compressed_packed(PartFinder& finder, PackedSpec& spec) {
  const int64_t bits = spec.code.bits;
  const int64_t scale_rows = blocks_of(spec.rows, spec.code.block.rows);
  const int64_t groups = blocks_of(spec.columns, spec.code.block.columns);
  const std::string module = finder.module();
  if (spec.columns * bits % 8 != 0)
    return finder.problem(spec.name, cat("expected an even number of columns, got ", spec.columns));
  finder.need(
      {PartRole::kCodes, module + ".weight_packed", {DType::kI32}, {{spec.rows, blocks_of(spec.columns * bits, 32)}}});
  std::vector<std::vector<int64_t>> shapes{{scale_rows, groups}};
  if (scale_rows * groups == 1) shapes.push_back({1});
  finder.need({PartRole::kScales, module + ".weight_scale", kScaleTypes, shapes});
  if (spec.code.zeros == ZeroPoints::kStored)
    finder.need(
        {PartRole::kZeros, module + ".weight_zero_point", {DType::kI32}, {{blocks_of(scale_rows * bits, 32), groups}}});
  else
    finder.take_idle_zeros(module + ".weight_zero_point");
  finder.take_order(module + ".weight_g_idx", "actorder is group");
  const std::string shape_name = module + ".weight_shape";
  const TensorInfo* shape = finder.take({PartRole::kRecord, shape_name, {DType::kI64}, {{2}}});
  if (shape == nullptr) return;
  int64_t sizes[2] = {};
  std::memcpy(sizes, finder.bytes(*shape).data(), sizeof sizes);
  if (sizes[0] != spec.rows || sizes[1] != spec.columns)
    finder.problem(shape_name, cat("is ", shape_text(sizes), ", expected ",
                                   shape_text(std::vector{spec.rows, spec.columns}), " from config.json"));
}

void find_compressed_int8(PartFinder& finder, PackedSpec& spec) {
  const std::string module = finder.module();
  const std::vector<std::vector<int64_t>> shapes = scale_shapes(spec, spec.code.block);
  if (finder.contains(module + ".SCB"))
    finder.problem(module + ".SCB", "belongs to bitsandbytes, expected compressed-tensors' weight_scale");
  finder.need({PartRole::kCodes, spec.name, {DType::kI8}, {{spec.rows, spec.columns}}});
  finder.need({PartRole::kScales, module + ".weight_scale", {DType::kF32, DType::kBF16, DType::kF16}, shapes});
  if (spec.code.zeros == ZeroPoints::kStored)
    finder.need({PartRole::kZeros, module + ".weight_zero_point", {DType::kI8}, shapes});
  else
    finder.take_idle_zeros(module + ".weight_zero_point");
}

constexpr QuantMethod kCompressedMethods[] = {{.name = "compressed-tensors",
                                               .read = read_compressed_tensors,
                                               .exclude = exclude_compressed_tensors,
                                               .other_name = "compressed_tensors"}};
constexpr std::string_view kCompressedMarks[] = {".weight_packed"};
constexpr TensorLayout kCompressedLayouts[] = {
    {.packing = MatrixPacking::kCompressedPacked,
     .meaning = "compressed-tensors' packed numbers: .weight_packed with .weight_scale",
     .marks = kCompressedMarks,
     .find = find_compressed_packed,
     .bytes = bytes_with_half_scales},
    {.packing = MatrixPacking::kCompressedInt8,
     .meaning = "compressed-tensors' int8: .weight of type I8 with .weight_scale",
     .type = DType::kI8,
     .find = find_compressed_int8,
     .bytes = bytes_with_half_scales}};

}  // namespace

constexpr QuantFormat kCompressedTensorsFormat{.methods = kCompressedMethods, .layouts = kCompressedLayouts};

}  // namespace lancet
