#include "lancet/models/weight_kind.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr auto kAttentionPart = LayerPart::kAttention;
constexpr auto kMlpInput = LayerPart::kMlpInput;
constexpr auto kMlpOutput = LayerPart::kMlpOutput;
constexpr auto kLayer = WeightPlace::kLayer;

/// Roles in the enumeration's order.
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

}  // namespace lancet
