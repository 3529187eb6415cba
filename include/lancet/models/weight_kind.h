// The role of a weight in the computation, independent of its name in a family.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lancet {

/// Matrices are [out, in]. The output projections of attention and of the MLP write to the residual stream.
enum class WeightKind : uint8_t {
  kEmbedding,
  kPositions,  ///< learned positions, one row per position
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
  kQueryDown,  ///< latent attention (LatentConfig): computes the vector for queries
  kQueryDownNorm,
  kKeyValueDown,  ///< computes the vector for keys and values, followed by the turned part of all heads' keys
  kKeyValueDownNorm,
  kKeyValueUp,  ///< each head's key and value, interleaved by head
  kSinks,       ///< one score per head (ModelConfig::attention_sinks)
  kAttnGate,    ///< the sigmoid of its output multiplies the input of kAttnOut
  kAttnOut,
  kAttnOutBias,
  kAttnPostNorm,  ///< norm between attention's output projection and the residual stream
  kMixerQuery,    ///< weights of a recurrent mixer (RecurrenceConfig), up to kMixerOut
  kMixerKey,
  kMixerValue,
  kMixerGate,
  kMixerRate,
  kMixerDecay,
  kMixerStepDown,  ///< selective space: computes the vector that kMixerStep reads
  kMixerStepNorm,  ///< norm of that vector
  kMixerKeyNorm,
  kMixerQueryNorm,
  kMixerStep,  ///< computes the step size of a state space at a token
  kMixerTaps,  ///< weights of the short convolution, channel after channel
  kMixerTapsBias,
  kMixerDecayBias,
  kMixerDecayScale,  ///< a logarithm; in a selective space one for each number of each channel's state
  kMixerSkip,        ///< factor of each head's values that are added to a state space's results
  kMixerNorm,
  kMixerOut,
  kMlpNorm,
  kMlpNormBias,
  kRouter,        ///< decides which experts a token goes to
  kRouterBias,    ///< added to the scores by which experts are chosen
  kRouterOffset,  ///< bias of the router's outputs
  kGate,          ///< in a layer with experts, all experts' matrices one after the other; the same for kUp and kDown
  kUp,            ///< the only input projection of an MLP without a gate
  kDown,
  kSharedGate,  ///< shared MLP beside the experts, which every token goes through
  kSharedUp,
  kSharedDown,
  kSharedSwitch,  ///< the sigmoid of its output multiplies that MLP's output
  kGateBias,
  kUpBias,
  kDownBias,
  kDownBiases,  ///< one bias vector per expert, one after the other
  kXieluAbove,  ///< factors of Activation::kXielu, before a softplus: kXieluAbove of squares above 0, kXieluBelow of
                ///< exponentials below
  kXieluBelow,
  kXieluSlope,   ///< slope of kXielu at 0
  kXieluCut,     ///< upper limit of the input of the exponentials
  kMlpPostNorm,  ///< norm between the down projection and the residual stream
  kFinalNorm,
  kFinalNormBias,
  kHead,
  kHeadBias
};
constexpr size_t kWeightKinds = static_cast<size_t>(WeightKind::kHeadBias) + 1;

/// The part of the model that a weight belongs to: it is placed with the embedding, in a layer, or with the head.
enum class WeightPlace : uint8_t { kEmbedding, kLayer, kHead };

/// The part of its layer in which a weight is used.
enum class LayerPart : uint8_t { kNone, kAttention, kMlpInput, kMlpOutput };

/// The quantity that a dimension of a weight indexes.
enum class Axis : uint8_t {
  kNone,
  kVocab,
  kPositions,
  kModel,
  kFfn,
  kExperts,
  kQuery,
  kQueryInput,  ///< input of queries: the hidden state, or latent attention's vector
  kKeyValue,
  kHeads,
  kExpertOutputs,  ///< each expert's output: numbers of the hidden state
  kQueryRank,
  kKeyValueRank,
  kLatentKeyValue,  ///< latent attention's vector for keys and values, and the turned part of keys
  kLatentHeads,     ///< each head's key without the turned part, and its value
  kAttended,        ///< input of attention's output projection
  kMixerKey,
  kMixerValue,
  kMixerInput,      ///< input of keys and queries: the hidden state, or a selective space's channels
  kMixerStepInput,  ///< input of steps: the hidden state, or a vector
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

/// The properties of a weight kind that hold in every family.
struct WeightRole {
  WeightKind kind;
  WeightPlace place;
  LayerPart part;
  Axis out;
  Axis in = Axis::kNone;  ///< kNone: a vector
};

const WeightRole& role_of(WeightKind kind);

}  // namespace lancet
