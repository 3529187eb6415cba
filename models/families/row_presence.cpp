#include "row_presence.h"

namespace lancet {

bool is_of_experts(const WeightRow& row) {
  const size_t layer = row.name.find("{}");
  return layer != std::string_view::npos && row.name.find("{}", layer + 1) != std::string_view::npos;
}

bool is_there(const ModelConfig& config, const WeightRow& row, int64_t layer) {
  if (row.is_had != nullptr && !row.is_had(config)) return false;
  switch (row.kind) {
    case WeightKind::kRouter:
      return config.has_experts(layer);
    case WeightKind::kGate:
      return config.gated_mlp && config.has_experts(layer) == is_of_experts(row);
    case WeightKind::kUp:
    case WeightKind::kDown:
      return config.has_experts(layer) == is_of_experts(row);
    case WeightKind::kHead:
      return !config.tied_embeddings;
    case WeightKind::kHeadBias:
      return config.head_bias;
    case WeightKind::kQueryBias:
    case WeightKind::kKeyBias:
    case WeightKind::kValueBias:
      return config.qkv_bias;
    case WeightKind::kAttnOutBias:
      return config.attention_out_bias;
    case WeightKind::kGateBias:
      return config.gated_mlp && config.mlp_bias;
    case WeightKind::kUpBias:
    case WeightKind::kDownBias:
      return config.mlp_bias;
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
      return config.head_norm != HeadNorm::kNone;
    default:
      return true;
  }
}

}  // namespace lancet
