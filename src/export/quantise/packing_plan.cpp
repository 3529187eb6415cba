#include "packing_plan.h"

#include <algorithm>
#include <set>
#include <span>

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
OrderedJson compressed_settings(int64_t bits, const std::vector<std::string>& heads) {
  const OrderedJson weights = {
      {"num_bits", bits}, {"type", "int"}, {"symmetric", true}, {"strategy", "group"}, {"group_size", kQuantisedGroup},
      {"dynamic", false}};
  const OrderedJson group = {
      {"targets", {"Linear"}}, {"weights", weights}, {"input_activations", nullptr}, {"output_activations", nullptr}};
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"quantization_status", "compressed"},
          {"config_groups", {{"group_0", group}}},
          {"ignore", heads}};
}

MatrixInput input_of(const ModelConfig& config, WeightId id) {
  const WeightKind kind = id.kind;
  if (kind == WeightKind::kMixerOut && has_input(config, id.layer, MatrixInput::kMixerHeads))
    return MatrixInput::kMixerHeads;
  if (kind == WeightKind::kAttnOut || kind == WeightKind::kMixerOut) return MatrixInput::kHeads;
  if (kind == WeightKind::kQuery && config.latent.query_rank > 0) return MatrixInput::kQueryVector;
  if (kind == WeightKind::kKeyValueUp) return MatrixInput::kKeyVector;
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

/// Small matrices that every program leaves as they are; a selective space's that read what lies within it make steps,
/// keys and queries, which grow as exponentials along the text.
bool stays_precise(const ModelConfig& config, WeightKind kind) {
  const Axis in = role_of(kind).in;
  return kind == WeightKind::kRouter || kind == WeightKind::kSharedSwitch || kind == WeightKind::kMixerRate ||
         kind == WeightKind::kMixerDecay ||
         (config.recurrence.is_selective() && (in == Axis::kMixerInput || in == Axis::kMixerStepInput));
}

/// Adds the modules' other names: programs look for those of their own classes, which files may have otherwise.
void add_other_names(const Family& family, std::vector<std::string>& modules) {
  const std::vector<std::string> given = modules;
  for (const PrefixList& names : family.other_names) {
    std::vector<NamePrefix> back;
    for (const NamePrefix& prefix : names)
      if (!prefix.to.empty()) back.push_back({prefix.to, prefix.from});
    for (const std::string& module : given) {
      const std::string own = renamed(module, back);
      std::string other = own != module ? own : renamed(module, names);
      if (std::ranges::find(modules, other) == modules.end()) modules.push_back(std::move(other));
    }
  }
}

/// The head's modules, by all names that the family's files have for it, also where it is tied.
std::vector<std::string> head_modules(const ModelConfig& config) {
  std::vector<std::string> names{weight_spec(config, {WeightKind::kHead, 0}).stored.tensors.front()};
  add_other_names(*config.family, names);
  for (std::string& name : names) name = std::string(module_of(name));
  return names;
}

void check_layout(const Family& family, const WeightSpec& spec, QuantisedFormat format) {
  if (format == QuantisedFormat::kCompressedTensors && spec.stored.layout == Layout::kColumns)
    throw ConfigError(cat("--format compressed-tensors: its programs quantise linear layers, and those of ",
                          family.name, ", whose matrices are stored [in, out], are none: expected gptq"));
}

/// The place in the model of each of the spec's matrices.
std::vector<StoredRows> places_of(const WeightSpec& spec) {
  std::vector<StoredRows> places;
  if (!has_all_experts(spec.stored.layout)) {
    for (const std::string& name : spec.stored.tensors) places.push_back({.tensor = name});
    return places;
  }
  const int64_t rows = spec.parts_axis() == 0 ? spec.shape[0] / spec.experts : spec.shape[0];
  for (int64_t expert = 0; expert < spec.experts; ++expert)
    places.push_back({spec.stored.tensors.front(), expert * spec.stored.shape[1] + spec.stored.begin, rows});
  return places;
}

/// Modules of the matrices that are copied as they are because the model has no such weight: encoders of images, heads
/// for tokens further on. Programs that read them would take them for quantised.
std::vector<std::string> modules_beside(const Checkpoint& checkpoint, const std::set<std::string>& of_model) {
  std::vector<std::string> modules;
  for (const std::string& name : checkpoint.tensor_names())
    if (!of_model.contains(name) && name.ends_with(".weight") && checkpoint.view(name).shape.size() == 2)
      modules.emplace_back(module_of(name));
  return modules;
}

/// The weight of experts that share a tensor as files have it in which each has its own, by the names that the model's
/// files use. Throws: ConfigError where the family has no names for that.
WeightSpec with_own_tensors(const ModelConfig& config, const WeightSpec& spec, std::span<const NamePrefix> names) {
  ModelConfig apart = config;
  apart.experts.in_one_tensor = false;
  WeightSpec own = weight_spec(apart, spec.id);
  if (config.family->joins_experts || has_all_experts(own.stored.layout) ||
      std::ssize(own.stored.tensors) != spec.experts)
    throw ConfigError(cat("lancet quantise: layers of ", config.family->name,
                          " have all their experts in one tensor, and programs that read this family have no names for "
                          "matrices of one expert: quantise it while it is loaded (run.quantise_base)"));
  for (std::string& name : own.stored.tensors) name = renamed(name, names);
  return own;
}

}  // namespace

bool has_input(const ModelConfig& config, int64_t layer, MatrixInput input) {
  switch (input) {
    case MatrixInput::kNormed:
    case MatrixInput::kHeads:
      return config.has_mixing(layer);
    case MatrixInput::kMlpNormed:
    case MatrixInput::kMlpKey:
      return config.has_mlp(layer);
    case MatrixInput::kSharedNormed:
    case MatrixInput::kSharedKey:
      return config.has_shared_mlp(layer);
    case MatrixInput::kQueryVector:
      return config.has_attention(layer) && config.latent.query_rank > 0;
    case MatrixInput::kKeyVector:
      return config.has_attention(layer) && config.latent.rank > 0;
    case MatrixInput::kMixerHeads:
      return config.has_attention(layer) && config.has_recurrence(layer);
  }
  return false;
}

TensorView view_of(const Checkpoint& checkpoint, const StoredRows& place) {
  TensorView view = checkpoint.view(place.tensor);
  if (place.rows == 0) return view;
  const auto row_bytes = view.bytes.size() / static_cast<size_t>(view.shape[0] * view.shape[1]);
  view.bytes =
      view.bytes.subspan(static_cast<size_t>(place.begin) * row_bytes, static_cast<size_t>(place.rows) * row_bytes);
  view.shape = {place.rows, view.shape[2]};
  return view;
}

PackingPlan plan_packing(const ModelFiles& files, QuantisedFormat format, int64_t bits) {
  PackingPlan plan;
  std::set<std::string> seen, of_model;
  std::vector<std::string> modules, left_out;
  std::string misfit;
  const PrefixList names = names_used(files.config, weight_table(files.config), files.checkpoint);
  for (WeightSpec& spec : resolve_weights(files.config, files.checkpoint)) {
    const std::vector<std::string> stored = spec.tensor_names();
    of_model.insert(stored.begin(), stored.end());
    const WeightRole& role = role_of(spec.id.kind);
    if (role.place != WeightPlace::kLayer || role.in == Axis::kNone) continue;
    if (stays_precise(files.config, spec.id.kind)) {
      left_out.emplace_back(module_of(spec.name));
      continue;
    }
    check_layout(*files.config.family, spec, format);
    const std::vector<StoredRows> places = places_of(spec);
    if (has_all_experts(spec.stored.layout)) spec = with_own_tensors(files.config, spec, names);
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
                                 .from = places[i],
                                 .layer = spec.id.layer,
                                 .input = input_of(files.config, spec.id),
                                 .expert = static_cast<int64_t>(i),
                                 .is_turned = is_turned});
      else if (places[i].rows > 0)
        plan.apart.push_back({name, places[i]});
    }
    if (is_packed) plan.weights.push_back(std::move(spec));
  }
  if (plan.matrices.empty())
    throw ConfigError(cat(files.checkpoint.folder().string(),
                          ": expected matrices [out, in] with inputs in whole groups of ", kQuantisedGroup,
                          " (and for gptq outputs in whole words of 32 bits), got none; one of them: ", misfit));
  left_out.insert(left_out.end(), plan.in_full_precision.begin(), plan.in_full_precision.end());
  for (std::string& module : modules_beside(files.checkpoint, of_model)) left_out.push_back(std::move(module));
  add_other_names(*files.config.family, left_out);

  OrderedJson config = parse_ordered_json(files.checkpoint.config_text());
  config["quantization_config"] =
      format == QuantisedFormat::kGptq ? gptq_settings(bits) : compressed_settings(bits, head_modules(files.config));
  plan.config_text = with_unquantised(config.dump(2), left_out, modules);
  // by the reader of such files, so that nothing is packed otherwise than it will be read
  const auto scheme = QuantScheme::parse(plan.config_text, {}, "config.json of the output");
  for (PlannedMatrix& matrix : plan.matrices) matrix.code = *scheme->code_of(module_of(matrix.name));
  return plan;
}

}  // namespace lancet
