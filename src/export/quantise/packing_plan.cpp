#include "packing_plan.h"

#include <set>

#include "lancet/checkpoint/module_name.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/quant_formats/quant_scheme.h"
#include "lancet/quant_formats/unquantised_modules.h"

namespace lancet {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Returns the settings as GPTQModel and transformers write them.
OrderedJson gptq_settings(int64_t bits) {
  return {{"quant_method", "gptq"}, {"bits", bits}, {"group_size", kQuantisedGroup},
          {"desc_act", false},      {"sym", true},  {"checkpoint_format", "gptq"},
          {"lm_head", false}};
}

/// Returns the settings as llm-compressor writes them.
OrderedJson compressed_settings(int64_t bits, const std::string& head) {
  const OrderedJson weights = {
      {"num_bits", bits}, {"type", "int"}, {"symmetric", true}, {"strategy", "group"}, {"group_size", kQuantisedGroup},
      {"dynamic", false}};
  const OrderedJson group = {
      {"targets", {"Linear"}}, {"weights", weights}, {"input_activations", nullptr}, {"output_activations", nullptr}};
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"quantization_status", "compressed"},
          {"config_groups", {{"group_0", group}}},
          {"ignore", {head}}};
}

/// The head's module, as the family's files name it, also where it is tied.
std::string head_module(const ModelConfig& config) {
  return std::string(module_of(weight_spec(config, {WeightKind::kHead, 0}).stored.tensors.front()));
}

MatrixInput input_of(WeightKind kind) {
  if (kind == WeightKind::kAttnOut || kind == WeightKind::kMixerOut) return MatrixInput::kHeads;
  if (kind == WeightKind::kSharedGate || kind == WeightKind::kSharedUp) return MatrixInput::kSharedNormed;
  if (kind == WeightKind::kSharedDown) return MatrixInput::kSharedKey;
  switch (role_of(kind).part) {
    case LayerPart::kMlpInput:
      return MatrixInput::kMlpNormed;
    case LayerPart::kMlpOutput:
      return MatrixInput::kMlpKey;
    default:
      return MatrixInput::kNormed;
  }
}

/// Words of 32 bits lie along the columns, GPTQ's zero points along the rows.
bool fits(int64_t rows, int64_t columns, QuantisedFormat format, int64_t bits) {
  return columns % kQuantisedGroup == 0 && (format != QuantisedFormat::kGptq || rows * bits % 32 == 0);
}

/// Small matrices that every program leaves as they are.
bool stays_precise(WeightKind kind) {
  return kind == WeightKind::kRouter || kind == WeightKind::kSharedSwitch || kind == WeightKind::kMixerRate ||
         kind == WeightKind::kMixerDecay;
}

/// What of a layer is not packed, as "layers have ..."; empty: nothing.
std::string unsupported_part(const ModelConfig& config, const WeightSpec& spec) {
  if (config.latent.rank > 0) return "latent attention";
  if (config.recurrence.is_selective()) return "state spaces whose matrices read what lies within them";
  if (has_all_experts(spec.stored.layout)) return "all their experts in one tensor";
  if (!config.has_mlp(spec.id.layer)) return "one part alone: a mixer, attention or an MLP";
  const bool has_both = config.has_recurrence(spec.id.layer) && config.has_attention(spec.id.layer);
  return has_both ? "attention with a mixer beside it" : "";
}

void check_family(const ModelFiles& files, const WeightSpec& spec, QuantisedFormat format) {
  if (format == QuantisedFormat::kCompressedTensors && spec.stored.layout == Layout::kColumns)
    throw ConfigError(cat("--format compressed-tensors: its programs quantise linear layers, and those of ",
                          files.config.family->name, ", whose matrices are stored [in, out], are none: expected gptq"));
  if (const std::string part = unsupported_part(files.config, spec); !part.empty())
    throw ConfigError(cat("lancet quantise: layers of ", files.config.family->name, " have ", part,
                          ", which is not supported: quantise it while it is loaded (run.quantise_base)"));
}

}  // namespace

PackingPlan plan_packing(const ModelFiles& files, QuantisedFormat format, int64_t bits) {
  PackingPlan plan;
  std::set<std::string> seen;
  std::vector<std::string> modules, left_out;
  std::string misfit;
  for (WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    const WeightRole& role = role_of(spec.id.kind);
    if (role.place != WeightPlace::kLayer || role.in == Axis::kNone) continue;
    if (stays_precise(spec.id.kind)) {
      left_out.emplace_back(module_of(spec.name));
      continue;
    }
    check_family(files, spec, format);
    const bool is_turned = spec.stored.layout == Layout::kColumns;
    if (is_turned) {
      std::swap(spec.stored.shape[0], spec.stored.shape[1]);
      spec.stored.layout = Layout::kRows;
    }
    const int64_t rows = spec.stored.shape[0], columns = spec.stored.shape[1];
    const bool is_packed = fits(rows, columns, format, bits);
    if (!is_packed) misfit = cat(spec.name, " ", shape_text(std::vector{rows, columns}));
    for (size_t i = 0; i < spec.stored.tensors.size(); ++i) {
      const std::string& name = spec.stored.tensors[i];
      if (!seen.insert(name).second) continue;
      (is_packed ? modules : plan.in_full_precision).emplace_back(module_of(name));
      if (is_packed)
        plan.matrices.push_back({.name = name,
                                 .layer = spec.id.layer,
                                 .input = input_of(spec.id.kind),
                                 .expert = static_cast<int64_t>(i),
                                 .is_turned = is_turned});
    }
    if (is_packed) plan.weights.push_back(std::move(spec));
  }
  if (plan.matrices.empty())
    throw ConfigError(cat(files.checkpoint.folder().string(),
                          ": expected matrices [out, in] with inputs in whole groups of ", kQuantisedGroup,
                          " (and for gptq outputs in whole words of 32 bits), got none; one of them: ", misfit));
  left_out.insert(left_out.end(), plan.in_full_precision.begin(), plan.in_full_precision.end());

  OrderedJson config = parse_ordered_json(files.checkpoint.config_text());
  config["quantization_config"] =
      format == QuantisedFormat::kGptq ? gptq_settings(bits) : compressed_settings(bits, head_module(files.config));
  plan.config_text = with_unquantised(config.dump(2), left_out, modules);
  // by the reader of such files, so that nothing is packed otherwise than it will be read
  const auto scheme = QuantScheme::parse(plan.config_text, {}, "config.json of the output");
  for (PlannedMatrix& matrix : plan.matrices) matrix.code = *scheme->code_of(module_of(matrix.name));
  return plan;
}

}  // namespace lancet
