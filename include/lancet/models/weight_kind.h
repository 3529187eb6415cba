// What a weight is in the computation, whatever its family calls it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lancet {

/// Matrices are [out, in]. Attention's and the MLP's output projections write to the residual stream.
enum class WeightKind : uint8_t {
  kEmbedding,
  kPositions,  ///< learned, one row a position
  kEmbeddingNorm,
  kEmbeddingNormBias,
  kAttnNorm,
  kAttnNormBias,
  kQuery,
  kKey,
  kValue,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kQueryNorm,
  kKeyNorm,
  kQueryNormBias,
  kKeyNormBias,
  kQueryDown,  ///< latent attention's (LatentConfig): what makes the vector for queries
  kQueryDownNorm,
  kKeyValueDown,  ///< the vector for keys and values, and behind it the turned part of all heads' keys
  kKeyValueDownNorm,
  kKeyValueUp,  ///< each head's key and value, in turn
  kSinks,       ///< a score of each head (ModelConfig::attention_sinks)
  kAttnGate,    ///< the sigmoid of its output multiplies what attention gives to kAttnOut
  kAttnOut,
  kAttnOutBias,
  kAttnPostNorm,  ///< norm between attention's output projection and the residual stream
  kMixerQuery,    ///< a recurrent mixer's (RecurrenceConfig)
  kMixerKey,
  kMixerValue,
  kMixerGate,
  kMixerRate,
  kMixerDecay,
  kMixerStepDown,  ///< a selective space's: what makes the vector that kMixerStep reads
  kMixerStepNorm,  ///< likewise, of that vector
  kMixerKeyNorm,
  kMixerQueryNorm,
  kMixerStep,  ///< how far a state space goes on at a token
  kMixerTaps,  ///< the short convolution's: each channel's, one after the other
  kMixerTapsBias,
  kMixerDecayBias,
  kMixerDecayScale,  ///< a logarithm; of a selective space for each number of each channel's state
  kMixerSkip,        ///< share of each head's values that a state space's results have added
  kMixerNorm,
  kMixerOut,
  kMlpNorm,
  kMlpNormBias,
  kRouter,        ///< says which experts a token goes to
  kRouterBias,    ///< what scores of experts have added where they are chosen by them
  kRouterOffset,  ///< bias of the router's outputs
  kGate,          ///< all experts' one after the other, in a layer with experts; so kUp and kDown
  kUp,            ///< the only projection into an MLP without a gate
  kDown,
  kSharedGate,  ///< an MLP that every token goes through beside its experts
  kSharedUp,
  kSharedDown,
  kSharedSwitch,  ///< the sigmoid of its output multiplies that MLP's
  kGateBias,
  kUpBias,
  kDownBias,
  kDownBiases,  ///< one for each expert, one after the other
  kXieluAbove,  ///< factors of Activation::kXielu, before a softplus: of squares above 0, of exponentials below
  kXieluBelow,
  kXieluSlope,   ///< its slope at 0
  kXieluCut,     ///< what exponentials begin below
  kMlpPostNorm,  ///< norm between the down projection and the residual stream
  kFinalNorm,
  kFinalNormBias,
  kHead,
  kHeadBias
};
constexpr size_t kWeightKinds = static_cast<size_t>(WeightKind::kHeadBias) + 1;

/// Part of the model that a weight belongs to: with the embedding, in a layer, with the head.
enum class WeightPlace : uint8_t { kEmbedding, kLayer, kHead };

/// Which part of its layer a weight serves.
enum class LayerPart : uint8_t { kNone, kAttention, kMlpInput, kMlpOutput };

/// What a dimension of a weight runs over.
enum class Axis : uint8_t {
  kNone,
  kVocab,
  kPositions,
  kModel,
  kFfn,
  kExperts,
  kQuery,
  kQueryInput,  ///< what queries are made of: the hidden state, or latent attention's vector
  kKeyValue,
  kHeads,
  kExpertOutputs,  ///< each expert's numbers of the hidden state
  kQueryRank,
  kKeyValueRank,
  kLatentKeyValue,  ///< latent attention's vector for keys and values, and the turned part of keys
  kLatentHeads,     ///< each head's key without its turned part, and its value
  kAttended,        ///< what attention gives to the output projection
  kMixerKey,
  kMixerValue,
  kMixerInput,      ///< what keys and queries are made of: the hidden state, or a selective space's channels
  kMixerStepInput,  ///< what steps are made of: the hidden state, or a vector
  kMixerStepRank,
  kMixerHeads,
  kMixerDecays,
  kMixerNorm,
  kMixerChannels,
  kMixerTaps,
  kShared,
  kQueryNorm,
  kKeyNorm,
  kOne,    ///< one number in a list
  kScalar  ///< one number, stored without a dimension
};

/// What is known of a kind in every family.
struct WeightRole {
  WeightKind kind;
  WeightPlace place;
  LayerPart part;
  Axis out;
  Axis in = Axis::kNone;  ///< kNone: a vector
};

const WeightRole& role_of(WeightKind kind);

}  // namespace lancet
