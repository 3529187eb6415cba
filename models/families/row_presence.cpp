#include "row_presence.h"

namespace lancet {

bool is_of_experts(const WeightRow& row) {
  if (has_all_experts(row.layout)) return true;
  const size_t layer = row.name.find("{}");
  return layer != std::string_view::npos && row.name.find("{}", layer + 1) != std::string_view::npos;
}

namespace {

/// Whether the layer has its gates, ups and downs where the row says.
bool has_mlp_of(const ModelConfig& config, const WeightRow& row, int64_t layer) {
  if (!config.has_mlp(layer)) return false;
  if (!config.has_experts(layer)) return !is_of_experts(row);
  return is_of_experts(row) && has_all_experts(row.layout) == config.experts.in_one_tensor;
}

/// Whether its gates, ups and downs have biases, and the row is theirs.
bool has_biases_of(const ModelConfig& config, const WeightRow& row, int64_t layer) {
  if (!config.has_mlp(layer)) return false;
  if (config.has_experts(layer)) return config.experts.mlp_biases && is_of_experts(row);
  return config.mlp_bias && !is_of_experts(row);
}

bool is_of_mixer(WeightKind kind) { return kind >= WeightKind::kMixerQuery && kind <= WeightKind::kMixerOut; }

/// What of a recurrent mixer a layer has.
bool has_part_of_mixer(const ModelConfig& config, WeightKind kind, int64_t layer) {
  if (!config.has_recurrence(layer)) return false;
  const RecurrenceConfig& mixer = config.recurrence;
  if (kind == WeightKind::kMixerTapsBias) return mixer.taps_bias;
  return kind != WeightKind::kMixerNorm || mixer.kind == MixerKind::kGatedDelta || mixer.norm != MixerNorm::kNone;
}

/// What of an MLP of experts a layer has.
bool has_part_of_experts(const ModelConfig& config, WeightKind kind, int64_t layer) {
  if (!config.has_experts(layer)) return false;
  switch (kind) {
    case WeightKind::kRouterBias:
      return config.experts.choice_bias;
    case WeightKind::kRouterOffset:
      return config.experts.router_bias;
    case WeightKind::kDownBiases:
      return config.experts.mlp_biases;
    case WeightKind::kSharedGate:
      return config.experts.shared > 0 && config.gated_mlp;
    case WeightKind::kSharedSwitch:
      return config.experts.shared_switch;
    case WeightKind::kSharedUp:
    case WeightKind::kSharedDown:
      return config.experts.shared > 0;
    default:
      return true;
  }
}

}  // namespace

bool is_there(const ModelConfig& config, const WeightRow& row, int64_t layer) {
  if (row.is_had != nullptr && !row.is_had(config, layer)) return false;
  if (is_of_mixer(row.kind)) return has_part_of_mixer(config, row.kind, layer);
  switch (row.kind) {
    case WeightKind::kRouter:
    case WeightKind::kRouterBias:
    case WeightKind::kRouterOffset:
    case WeightKind::kDownBiases:
    case WeightKind::kSharedGate:
    case WeightKind::kSharedUp:
    case WeightKind::kSharedDown:
    case WeightKind::kSharedSwitch:
      return has_part_of_experts(config, row.kind, layer);
    case WeightKind::kQuery:
    case WeightKind::kKey:
    case WeightKind::kValue:
    case WeightKind::kAttnOut:
      return config.has_attention(layer);
    case WeightKind::kAttnGate:
      return config.gated_attention && config.has_attention(layer);
    case WeightKind::kGate:
      return config.gated_mlp && has_mlp_of(config, row, layer);
    case WeightKind::kUp:
    case WeightKind::kDown:
      return has_mlp_of(config, row, layer);
    case WeightKind::kHead:
      return !config.tied_embeddings;
    case WeightKind::kHeadBias:
      return config.head_bias;
    case WeightKind::kQueryBias:
    case WeightKind::kKeyBias:
    case WeightKind::kValueBias:
      return config.qkv_bias && config.has_attention(layer);
    case WeightKind::kAttnOutBias:
      return config.attention_out_bias && config.has_attention(layer);
    case WeightKind::kGateBias:
      return config.gated_mlp && has_biases_of(config, row, layer);
    case WeightKind::kUpBias:
    case WeightKind::kDownBias:
      return has_biases_of(config, row, layer);
    case WeightKind::kSinks:
      return config.attention_sinks;
    case WeightKind::kQueryDown:
    case WeightKind::kQueryDownNorm:
      return config.latent.query_rank > 0;
    case WeightKind::kMlpNorm:
    case WeightKind::kMlpNormBias:
      return config.mlp_norm && !config.bare_norms;
    case WeightKind::kAttnNorm:
    case WeightKind::kAttnNormBias:
    case WeightKind::kFinalNorm:
    case WeightKind::kFinalNormBias:
      return !config.bare_norms;
    case WeightKind::kAttnPostNorm:
    case WeightKind::kMlpPostNorm:
      return config.post_norms;
    case WeightKind::kXieluAbove:
    case WeightKind::kXieluBelow:
    case WeightKind::kXieluSlope:
    case WeightKind::kXieluCut:
      return config.activation == Activation::kXielu;
    case WeightKind::kQueryNorm:
    case WeightKind::kKeyNorm:
    case WeightKind::kQueryNormBias:
    case WeightKind::kKeyNormBias:
      return config.head_norm != HeadNorm::kNone && config.has_attention(layer);
    default:
      return true;
  }
}

}  // namespace lancet
