#include "lancet/models/weight_kind.h"

#include "weight_rows.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr auto kAttentionPart = LayerPart::kAttention;
constexpr auto kMlpInput = LayerPart::kMlpInput;
constexpr auto kMlpOutput = LayerPart::kMlpOutput;
constexpr auto kLayer = WeightPlace::kLayer;

/// The roles, in the order of the enumeration.
constexpr std::array<WeightRole, kWeightKinds> kRoles{{
    {kEmbedding, WeightPlace::kEmbedding, LayerPart::kNone, Axis::kVocab, Axis::kModel},
    {kPositions, WeightPlace::kEmbedding, LayerPart::kNone, Axis::kPositions, Axis::kModel},
    {kEmbeddingNorm, WeightPlace::kEmbedding, LayerPart::kNone, Axis::kModel},
    {kEmbeddingNormBias, WeightPlace::kEmbedding, LayerPart::kNone, Axis::kModel},
    {kAttnNorm, kLayer, kAttentionPart, Axis::kModel},
    {kAttnNormBias, kLayer, kAttentionPart, Axis::kModel},
    {kQuery, kLayer, kAttentionPart, Axis::kQuery, Axis::kQueryInput},
    {kKey, kLayer, kAttentionPart, Axis::kKeyValue, Axis::kModel},
    {kValue, kLayer, kAttentionPart, Axis::kKeyValue, Axis::kModel},
    {kQueryBias, kLayer, kAttentionPart, Axis::kQuery},
    {kKeyBias, kLayer, kAttentionPart, Axis::kKeyValue},
    {kValueBias, kLayer, kAttentionPart, Axis::kKeyValue},
    {kQueryNorm, kLayer, kAttentionPart, Axis::kQueryNorm},
    {kKeyNorm, kLayer, kAttentionPart, Axis::kKeyNorm},
    {kQueryNormBias, kLayer, kAttentionPart, Axis::kQueryNorm},
    {kKeyNormBias, kLayer, kAttentionPart, Axis::kKeyNorm},
    {kQueryDown, kLayer, kAttentionPart, Axis::kQueryRank, Axis::kModel},
    {kQueryDownNorm, kLayer, kAttentionPart, Axis::kQueryRank},
    {kKeyValueDown, kLayer, kAttentionPart, Axis::kLatentKeyValue, Axis::kModel},
    {kKeyValueDownNorm, kLayer, kAttentionPart, Axis::kKeyValueRank},
    {kKeyValueUp, kLayer, kAttentionPart, Axis::kLatentHeads, Axis::kKeyValueRank},
    {kSinks, kLayer, kAttentionPart, Axis::kHeads},
    {kAttnGate, kLayer, kAttentionPart, Axis::kQuery, Axis::kModel},
    {kAttnOut, kLayer, kAttentionPart, Axis::kModel, Axis::kAttended},
    {kAttnOutBias, kLayer, kAttentionPart, Axis::kModel},
    {kAttnPostNorm, kLayer, kAttentionPart, Axis::kModel},
    {kMixerQuery, kLayer, kAttentionPart, Axis::kMixerKey, Axis::kMixerInput},
    {kMixerKey, kLayer, kAttentionPart, Axis::kMixerKey, Axis::kMixerInput},
    {kMixerValue, kLayer, kAttentionPart, Axis::kMixerValue, Axis::kModel},
    {kMixerGate, kLayer, kAttentionPart, Axis::kMixerValue, Axis::kModel},
    {kMixerRate, kLayer, kAttentionPart, Axis::kMixerHeads, Axis::kModel},
    {kMixerDecay, kLayer, kAttentionPart, Axis::kMixerHeads, Axis::kModel},
    {kMixerStepDown, kLayer, kAttentionPart, Axis::kMixerStepRank, Axis::kMixerInput},
    {kMixerStepNorm, kLayer, kAttentionPart, Axis::kMixerStepRank},
    {kMixerKeyNorm, kLayer, kAttentionPart, Axis::kMixerKey},
    {kMixerQueryNorm, kLayer, kAttentionPart, Axis::kMixerKey},
    {kMixerStep, kLayer, kAttentionPart, Axis::kMixerHeads, Axis::kMixerStepInput},
    {kMixerTaps, kLayer, kAttentionPart, Axis::kMixerTaps},
    {kMixerTapsBias, kLayer, kAttentionPart, Axis::kMixerChannels},
    {kMixerDecayBias, kLayer, kAttentionPart, Axis::kMixerHeads},
    {kMixerDecayScale, kLayer, kAttentionPart, Axis::kMixerDecays},
    {kMixerSkip, kLayer, kAttentionPart, Axis::kMixerHeads},
    {kMixerNorm, kLayer, kAttentionPart, Axis::kMixerNorm},
    {kMixerOut, kLayer, kAttentionPart, Axis::kModel, Axis::kMixerValue},
    {kMlpNorm, kLayer, kMlpInput, Axis::kModel},
    {kMlpNormBias, kLayer, kMlpInput, Axis::kModel},
    {kRouter, kLayer, kMlpInput, Axis::kExperts, Axis::kModel},
    {kRouterBias, kLayer, kMlpInput, Axis::kExperts},
    {kRouterOffset, kLayer, kMlpInput, Axis::kExperts},
    {kGate, kLayer, kMlpInput, Axis::kFfn, Axis::kModel},
    {kUp, kLayer, kMlpInput, Axis::kFfn, Axis::kModel},
    {kDown, kLayer, kMlpOutput, Axis::kModel, Axis::kFfn},
    {kSharedGate, kLayer, kMlpOutput, Axis::kShared, Axis::kModel},
    {kSharedUp, kLayer, kMlpOutput, Axis::kShared, Axis::kModel},
    {kSharedDown, kLayer, kMlpOutput, Axis::kModel, Axis::kShared},
    {kSharedSwitch, kLayer, kMlpOutput, Axis::kOne, Axis::kModel},
    {kGateBias, kLayer, kMlpInput, Axis::kFfn},
    {kUpBias, kLayer, kMlpInput, Axis::kFfn},
    {kDownBias, kLayer, kMlpOutput, Axis::kModel},
    {kDownBiases, kLayer, kMlpOutput, Axis::kExpertOutputs},
    {kXieluAbove, kLayer, kMlpInput, Axis::kOne},
    {kXieluBelow, kLayer, kMlpInput, Axis::kOne},
    {kXieluSlope, kLayer, kMlpInput, Axis::kScalar},
    {kXieluCut, kLayer, kMlpInput, Axis::kScalar},
    {kMlpPostNorm, kLayer, kMlpOutput, Axis::kModel},
    {kFinalNorm, WeightPlace::kHead, LayerPart::kNone, Axis::kModel},
    {kFinalNormBias, WeightPlace::kHead, LayerPart::kNone, Axis::kModel},
    {kHead, WeightPlace::kHead, LayerPart::kNone, Axis::kVocab, Axis::kModel},
    {kHeadBias, WeightPlace::kHead, LayerPart::kNone, Axis::kVocab},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kRoles.size(); ++i)
    if (static_cast<size_t>(kRoles[i].kind) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

const WeightRole& role_of(WeightKind kind) { return kRoles[static_cast<size_t>(kind)]; }

int64_t size_of(const ModelConfig& config, Axis axis, int64_t layer) {
  const bool by_head = config.head_norm == HeadNorm::kPerHead;
  switch (axis) {
    case Axis::kNone:
      return 1;
    case Axis::kVocab:
      return config.vocab_size;
    case Axis::kPositions:
      return config.first_position + config.max_positions;
    case Axis::kModel:
      return config.d_model;
    case Axis::kFfn:
      return config.key_shape(layer).size();
    case Axis::kExperts:
      return config.experts.count;
    case Axis::kQuery:
      return config.n_heads * config.head_dim;
    case Axis::kQueryInput:
      return config.latent.query_rank > 0 ? config.latent.query_rank : config.d_model;
    case Axis::kExpertOutputs:
      return config.experts.count * config.d_model;
    case Axis::kHeads:
      return config.n_heads;
    case Axis::kQueryRank:
      return config.latent.query_rank;
    case Axis::kKeyValueRank:
      return config.latent.rank;
    case Axis::kLatentKeyValue:
      return config.latent.rank + config.latent.turned_dim;
    case Axis::kLatentHeads:
      return config.n_heads * (config.latent.plain_dim + config.latent.value_dim);
    case Axis::kKeyValue:
      return config.n_kv_heads * config.head_dim;
    case Axis::kAttended:
      return config.attended_size();
    case Axis::kMixerKey:
      return config.recurrence.key_size();
    case Axis::kMixerValue:
      return config.recurrence.value_size();
    case Axis::kMixerInput:
      return config.recurrence.is_selective() ? config.recurrence.value_size() : config.d_model;
    case Axis::kMixerStepInput:
      return config.recurrence.is_selective() ? config.recurrence.step_rank : config.d_model;
    case Axis::kMixerStepRank:
      return config.recurrence.step_rank;
    case Axis::kMixerHeads:
      return config.recurrence.value_heads;
    case Axis::kMixerDecays:
      return config.recurrence.value_heads * (config.recurrence.is_selective() ? config.recurrence.key_dim : 1);
    case Axis::kMixerNorm:
      return config.recurrence.kind == MixerKind::kGatedDelta ? config.recurrence.value_dim
                                                              : config.recurrence.value_size();
    case Axis::kMixerChannels:
      return config.recurrence.channels();
    case Axis::kMixerTaps:
      return config.recurrence.channels() * config.recurrence.taps;
    case Axis::kShared:
      return config.experts.shared;
    case Axis::kQueryNorm:
      return by_head ? config.head_dim : config.n_heads * config.head_dim;
    case Axis::kKeyNorm:
      return by_head ? config.head_dim : config.n_kv_heads * config.head_dim;
    case Axis::kOne:
    case Axis::kScalar:
      return 1;
  }
  return 0;
}

std::string_view part_text(WeightKind kind) {
  switch (kind) {
    case WeightKind::kQuery:
    case WeightKind::kQueryBias:
    case WeightKind::kMixerQuery:
      return "[q]";
    case WeightKind::kKey:
    case WeightKind::kKeyBias:
    case WeightKind::kMixerKey:
      return "[k]";
    case WeightKind::kValue:
    case WeightKind::kValueBias:
    case WeightKind::kMixerValue:
      return "[v]";
    case WeightKind::kGate:
    case WeightKind::kGateBias:
    case WeightKind::kAttnGate:
    case WeightKind::kMixerGate:
      return "[gate]";
    case WeightKind::kMixerRate:
      return "[b]";
    case WeightKind::kMixerDecay:
      return "[a]";
    case WeightKind::kMixerStep:
    case WeightKind::kMixerStepDown:
      return "[dt]";
    default:
      return "[up]";
  }
}

int64_t groups_of(const ModelConfig& config, Layout layout) {
  switch (layout) {
    case Layout::kByHead:
      return config.n_kv_heads;
    case Layout::kByQueryHead:
    case Layout::kLatentParts:
      return config.n_heads;
    case Layout::kByMixerHead:
      return config.recurrence.key_heads;
    case Layout::kByExpert:
      return config.experts.count;
    case Layout::kByExpertColumns:
      return config.experts.count * config.experts.d_ffn;
    default:
      return 1;
  }
}

bool is_of_experts(const WeightRow& row) {
  if (has_all_experts(row.layout)) return true;
  const size_t layer = row.name.find("{}");
  return layer != std::string_view::npos && row.name.find("{}", layer + 1) != std::string_view::npos;
}

namespace {

/// Whether the layer has gates, ups and downs of the kind that the row describes.
bool has_mlp_of(const ModelConfig& config, const WeightRow& row, int64_t layer) {
  if (!config.has_mlp(layer)) return false;
  if (!config.has_experts(layer)) return !is_of_experts(row);
  return is_of_experts(row) && has_all_experts(row.layout) == config.experts.in_one_tensor;
}

/// Whether its gates, ups and downs have biases, and the row describes one.
bool has_biases_of(const ModelConfig& config, const WeightRow& row, int64_t layer) {
  if (!config.has_mlp(layer)) return false;
  if (config.has_experts(layer)) return config.experts.mlp_biases && has_mlp_of(config, row, layer);
  return config.mlp_bias && !is_of_experts(row);
}

bool is_of_mixer(WeightKind kind) { return kind >= WeightKind::kMixerQuery && kind <= WeightKind::kMixerOut; }

/// Whether the layer has this part of a recurrent mixer.
bool has_part_of_mixer(const ModelConfig& config, WeightKind kind, int64_t layer) {
  if (!config.has_recurrence(layer)) return false;
  const RecurrenceConfig& mixer = config.recurrence;
  if (kind == WeightKind::kMixerTapsBias) return mixer.taps_bias;
  return kind != WeightKind::kMixerNorm || mixer.kind == MixerKind::kGatedDelta || mixer.norm != MixerNorm::kNone;
}

/// Whether the layer has this part of an MLP with experts.
bool has_part_of_experts(const ModelConfig& config, WeightKind kind, int64_t layer) {
  if (!config.has_experts(layer)) return false;
  switch (kind) {
    case WeightKind::kRouterBias:
      return config.experts.choice_bias;
    case WeightKind::kRouterOffset:
      return config.experts.router_bias;
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
    case WeightKind::kDownBiases:
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
