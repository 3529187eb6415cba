// Metadata that would change what the model computes, where the architecture's row does not read it.
#include <algorithm>
#include <cmath>

#include "architectures.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// A number of metadata, and the value by which it says nothing.
struct Effect {
  std::string_view key;
  double none;
};
constexpr Effect kEffects[] = {
    {"attention.scale", 0},
    {"logit_scale", 0},
    {"residual_scale", 0},
    {"embedding_scale", 0},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"attention.clamp_kqv", 0},
    {"attention.max_alibi_bias", 0},
    {"rope.scale_linear", 1},
    {"attention.causal", 1},
    {"rope.scaling.yarn_ext_factor", 1},
    {"rope.scaling.yarn_attn_factor", 1},
};

bool reads(const GgufArchitecture& architecture, std::string_view key) {
  return std::ranges::any_of(architecture.keys, [&](const auto& rows) {
    return std::ranges::find(rows, key, &GgufKeyRow::file) != rows.end();
  });
}

void refuse_effects(const GgufFile& file, const GgufArchitecture& architecture) {
  for (const Effect& effect : kEffects) {
    if (reads(architecture, effect.key)) continue;
    const std::string key = own_key(file, effect.key);
    if (const std::optional<double> number = file.number(key); number && *number != effect.none)
      file.refuse(key, cat("none, or ", effect.none, ", for the architecture ", architecture.name),
                  cat(*number, ", which lancet would not apply: take the model's safetensors"));
  }
}

}  // namespace

void refuse_unread_numbers(const GgufFile& file, const GgufArchitecture& architecture, const OrderedJson& config) {
  refuse_effects(file, architecture);
  if (config.contains("kv_lora_rank")) return;  // latent attention has sizes of its own, which config.json says
  const int64_t size = head_size(config);
  const auto check = [&](std::string_view name, double expected) {
    const std::string key = own_key(file, name);
    if (const std::optional<int64_t> number = file.whole(key); number && *number != std::llround(expected))
      file.refuse(key, cat(std::llround(expected), ", as the heads of the architecture ", architecture.name, " have"),
                  cat(*number, ": take the model's safetensors"));
  };
  check("rope.dimension_count", turned_size(config));
  check("attention.value_length", static_cast<double>(size));
}

}  // namespace lancet
