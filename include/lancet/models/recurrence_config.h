// Recurrent mixers, which layers of hybrid models have in place of attention or beside it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lancet {

enum class MixerKind : uint8_t {
  kGatedDelta,        ///< the gated delta rule (arXiv 2412.06464), as in Qwen3-Next
  kShortConvolution,  ///< a gated convolution without a state (LFM2)
  kStateSpace,        ///< the state space of Mamba-2 (arXiv 2405.21060)
  kSelectiveSpace     ///< the state space of Mamba-1 (arXiv 2312.00752): each channel is a head, and each number of its
                      ///< state decays at its own rate
};

/// What is done with a state space's results before the output projection.
enum class MixerNorm : uint8_t {
  kNone,       ///< the results are multiplied by the gate's activation
  kGateFirst,  ///< they are multiplied by it, then normed
  kNormFirst   ///< they are normed, then multiplied by it
};

/// Factors that multiply the outputs of a state space's projections.
struct MixerFactors {
  double gate = 1;
  double value = 1;
  double key = 1;
  double query = 1;
  double step = 1;
  double out = 1;  ///< factor of the output projection
};

/// Describes recurrent mixers: a short convolution, and a state that is passed from token to token. A state space has
/// keys and queries too: keys are what writes to its state, queries are what reads it.
struct RecurrenceConfig {
  MixerKind kind = MixerKind::kGatedDelta;
  int64_t key_heads = 0;      ///< heads of queries and keys
  int64_t value_heads = 0;    ///< heads of values: key_heads or a multiple of it
  bool tiled_values = false;  ///< value head v reads key head v % key_heads, not v / (value_heads / key_heads)
  int64_t key_dim = 0;        ///< dimensions of a key head
  int64_t value_dim = 0;
  int64_t step_rank = 0;              ///< size of the vector from which a selective space's steps are computed
  int64_t taps = 0;                   ///< number of tokens that the convolution sees, the current one included
  bool taps_bias = false;             ///< the convolution has a bias
  bool has_attention = false;         ///< these layers have attention too, and the results of both are added
  MixerNorm norm = MixerNorm::kNone;  ///< norm of a state space's results
  int64_t norm_groups = 1;            ///< number of groups of its results that are normed separately
  double least_step = 0;              ///< the smallest step of a state space
  double most_step = std::numeric_limits<double>::infinity();
  MixerFactors factors;
  double attention_factor = 1;    ///< factor of the attention beside the mixer
  std::vector<bool> layers = {};  ///< which layers have a mixer; empty: none

  int64_t key_size() const { return key_heads * key_dim; }
  int64_t value_size() const { return value_heads * value_dim; }
  /// The number of channels of the convolution.
  int64_t channels() const { return has_scalars() ? 2 * key_size() + value_size() : value_size(); }
  /// How many scalars of a token are kept beside its channels.
  int64_t scalars() const {
    if (!has_scalars()) return 0;
    return kind == MixerKind::kStateSpace ? value_heads : 2 * value_heads;
  }
  bool is_selective() const { return kind == MixerKind::kSelectiveSpace; }
  /// The size of the state.
  int64_t state_size() const { return kind == MixerKind::kShortConvolution ? 0 : value_size() * key_dim; }

 private:
  bool has_scalars() const { return kind != MixerKind::kShortConvolution && !is_selective(); }
};

}  // namespace lancet
