#include "axis_sizes.h"

namespace lancet {

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

}  // namespace lancet
