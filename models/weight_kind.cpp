#include "lancet/models/weight_kind.h"

namespace lancet {
namespace {

using enum WeightKind;
constexpr auto kAttention = LayerPart::kAttention;
constexpr auto kMlpInput = LayerPart::kMlpInput;
constexpr auto kMlpOutput = LayerPart::kMlpOutput;
constexpr auto kLayer = WeightPlace::kLayer;

/// Roles in the enumeration's order.
constexpr std::array<WeightRole, kWeightKinds> kRoles{{
    {kEmbedding, WeightPlace::kEmbedding, LayerPart::kNone, Axis::kVocab, Axis::kModel},
    {kPositions, WeightPlace::kEmbedding, LayerPart::kNone, Axis::kPositions, Axis::kModel},
    {kAttnNorm, kLayer, kAttention, Axis::kModel},
    {kAttnNormBias, kLayer, kAttention, Axis::kModel},
    {kQuery, kLayer, kAttention, Axis::kQuery, Axis::kModel},
    {kKey, kLayer, kAttention, Axis::kKeyValue, Axis::kModel},
    {kValue, kLayer, kAttention, Axis::kKeyValue, Axis::kModel},
    {kQueryBias, kLayer, kAttention, Axis::kQuery},
    {kKeyBias, kLayer, kAttention, Axis::kKeyValue},
    {kValueBias, kLayer, kAttention, Axis::kKeyValue},
    {kQueryNorm, kLayer, kAttention, Axis::kQueryNorm},
    {kKeyNorm, kLayer, kAttention, Axis::kKeyNorm},
    {kAttnOut, kLayer, kAttention, Axis::kModel, Axis::kQuery},
    {kAttnOutBias, kLayer, kAttention, Axis::kModel},
    {kAttnPostNorm, kLayer, kAttention, Axis::kModel},
    {kMlpNorm, kLayer, kMlpInput, Axis::kModel},
    {kMlpNormBias, kLayer, kMlpInput, Axis::kModel},
    {kRouter, kLayer, kMlpInput, Axis::kExperts, Axis::kModel},
    {kGate, kLayer, kMlpInput, Axis::kFfn, Axis::kModel},
    {kUp, kLayer, kMlpInput, Axis::kFfn, Axis::kModel},
    {kDown, kLayer, kMlpOutput, Axis::kModel, Axis::kFfn},
    {kGateBias, kLayer, kMlpInput, Axis::kFfn},
    {kUpBias, kLayer, kMlpInput, Axis::kFfn},
    {kDownBias, kLayer, kMlpOutput, Axis::kModel},
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
