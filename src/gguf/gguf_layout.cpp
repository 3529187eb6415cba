#include "lancet/gguf/gguf_layout.h"

#include <algorithm>
#include <array>

#include "architectures.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/row_order.h"
#include "number_places.h"

namespace lancet {
namespace {

/// Tensors that llama.cpp's converter leaves in F32: what routes tokens to experts, learned positions, convolutions.
constexpr std::string_view kKeptTensors[] = {".ffn_gate_inp", ".ffn_gate_inp_shexp", "position_embd", ".ssm_conv1d"};

/// What a key's number is in metadata.
GgufValue value_of(GgufKeyKind kind, double number) {
  switch (kind) {
    case GgufKeyKind::kNumber:
      return static_cast<float>(number);
    case GgufKeyKind::kFlag:
      return number != 0;
    case GgufKeyKind::kWhole:
      break;
  }
  return static_cast<uint32_t>(number);
}

}  // namespace

GgufLayout::GgufLayout(std::string_view model_type, ConfigNumbers numbers, std::string where)
    : architecture_(find_architecture(model_type)), numbers_(std::move(numbers)), where_(std::move(where)) {
  if (architecture_ == nullptr)
    throw CheckpointError(cat(where_, ": model_type: expected one that lancet writes as GGUF (", gguf_model_types(),
                              "), got '", printable(model_type), "': convert the folder with llama.cpp's own script"));
}

std::string_view GgufLayout::architecture() const { return architecture_->name; }

std::vector<GgufEntry> GgufLayout::metadata(const GgufRope& rope) const {
  std::vector<GgufEntry> entries{{"general.architecture", std::string(architecture_->name)}};
  const auto add = [&](std::string_view key, GgufValue value) {
    entries.emplace_back(cat(architecture_->name, ".", key), std::move(value));
  };
  const auto whole = [](int64_t number) { return static_cast<uint32_t>(number); };
  for (const auto& keys : architecture_->keys)
    for (const GgufKeyRow& row : keys)
      if (const auto number = numbers_.find(row.config); number != numbers_.end()) {
        add(row.file, value_of(row.kind, number->second));
        if (row.config == "head_dim") add("attention.value_length", value_of(row.kind, number->second));
      }
  if (const auto vocabulary = numbers_.find("vocab_size"); vocabulary != numbers_.end())
    add("vocab_size", value_of(GgufKeyKind::kWhole, vocabulary->second));
  if (const auto eps = numbers_.find(architecture_->norm_key); eps != numbers_.end())
    add(architecture_->norm_key == "rms_norm_eps" ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
        value_of(GgufKeyKind::kNumber, eps->second));
  if (rope.dim == 0) return entries;
  add("rope.dimension_count", whole(rope.dim));
  add("rope.freq_base", static_cast<float>(rope.theta));
  if (architecture_->has_rope_sections) add("rope.dimension_sections", rope.sections);
  if (rope.window_theta) add("rope.freq_base_swa", static_cast<float>(*rope.window_theta));
  if (rope.scaling == "longrope") {
    add("rope.scaling.original_context_length", whole(rope.original_positions));
    add("rope.scaling.attn_factor", static_cast<float>(rope.amplitude));
  }
  if (rope.scaling != "linear" && rope.scaling != "yarn") return entries;
  add("rope.scaling.type", rope.scaling);
  add("rope.scaling.factor", static_cast<float>(rope.factor));
  if (rope.scaling != "yarn") return entries;
  add("rope.scaling.original_context_length", whole(rope.original_positions));
  if (rope.log_share > 0) add("rope.scaling.yarn_log_multiplier", static_cast<float>(0.1 * rope.log_share));
  add("rope.scaling.yarn_beta_fast", static_cast<float>(rope.fast_turns));
  add("rope.scaling.yarn_beta_slow", static_cast<float>(rope.slow_turns));
  return entries;
}

std::vector<GgufPlaceOf> GgufLayout::places_of(std::string_view weight) const {
  constexpr std::string_view kJoined = ".kv_b_proj.weight";
  if (!weight.ends_with(kJoined)) return {place_of(weight)};
  std::vector<GgufPlaceOf> places;
  const std::string_view module = weight.substr(0, weight.size() - kJoined.size());
  for (const auto& [name, part] :
       {std::pair{".k_b_proj.weight", GgufPart::kLatentKeys}, std::pair{".v_b_proj.weight", GgufPart::kLatentValues}}) {
    GgufPlaceOf& place = places.emplace_back(place_of(cat(module, name)));
    place.part = part;
    place.heads.queries = static_cast<int64_t>(numbers_.find("num_attention_heads")->second);
    place.plain_dim = static_cast<int64_t>(numbers_.find("qk_nope_head_dim")->second);
  }
  return places;
}

GgufPlaceOf GgufLayout::place_of(std::string_view weight) const {
  const size_t dot = weight.rfind('.');
  const std::string_view name = weight.substr(0, dot);
  const std::string_view end = dot == std::string_view::npos ? "" : weight.substr(dot);
  for (const GgufTensorRow& row : architecture_->whole_names)
    if (const auto numbers = numbers_in(weight, row.model)) return place_in(row, *numbers, "");
  if (end == ".weight" || end == ".bias")
    for (const auto& rows : architecture_->tensors)
      for (const GgufTensorRow& row : rows)
        if (const auto numbers = numbers_in(name, row.model)) return place_in(row, *numbers, end);
  throw CheckpointError(cat(where_, ": expected weights that a GGUF file of the architecture ", architecture_->name,
                            " has, got ", printable(weight), ": the file could not hold the model"));
}

GgufPlaceOf GgufLayout::place_in(const GgufTensorRow& row, const NameNumbers& numbers, std::string_view end) const {
  const auto heads = [&](std::string_view key) { return static_cast<int64_t>(numbers_.find(key)->second); };
  GgufPlaceOf place{.tensor = cat(numbered(row.file, numbers), end), .change = change_of(*architecture_, row, end)};
  if (places_in(row.model) > 1) place.expert = numbers[1];
  if (moves_rows(place.change)) place.heads = {heads("num_attention_heads"), heads("num_key_value_heads")};
  place.is_flat = row.model.ends_with(".shared_expert_gate") || row.model.ends_with(".conv1d");
  place.is_kept = row.file.ends_with("_norm") ||
                  std::ranges::any_of(kKeptTensors, [&](auto kept) { return row.file.ends_with(kept); });
  return place;
}

std::vector<GgufRopeTensor> gguf_rope_tensors(const GgufRope& rope) {
  if (rope.scaling == "longrope")
    return {{"rope_factors_long.weight", rope.long_factors}, {"rope_factors_short.weight", rope.short_factors}};
  if (rope.scaling != "llama3") return {};
  const std::vector<double> factors = llama3_factors(static_cast<size_t>(rope.dim / 2), rope.theta, rope.factor,
                                                     static_cast<double>(rope.original_positions));
  return {{"rope_freqs.weight", {factors.begin(), factors.end()}}};
}

}  // namespace lancet
