// Recurrent mixers, which layers of hybrid models have in the place of attention or beside it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace lancet {

enum class MixerKind : uint8_t {
  kGatedDelta,        ///< the gated delta rule (arXiv 2412.06464, as Qwen3-Next has it)
  kShortConvolution,  ///< a gated convolution and no state (LFM2)
  kStateSpace,        ///< Mamba-2's (arXiv 2405.21060)
  kSelectiveSpace  ///< Mamba-1's (arXiv 2312.00752): each channel is a head, whose state's numbers fade each by itself
};

/// What comes of a state space's results before the output projection.
enum class MixerNorm : uint8_t {
  kNone,       ///< the gate's activation multiplies them
  kGateFirst,  ///< that, and then they are normed
  kNormFirst   ///< they are normed, and then that
};

/// Factors of what a state space's projections give.
struct MixerFactors {
  double gate = 1;
  double value = 1;
  double key = 1;
  double query = 1;
  double step = 1;
  double out = 1;  ///< the output projection's
};

/// Layers whose tokens are mixed by a short convolution, and by a state that goes from token to token. A state space
/// has keys and queries too: what writes to its state, and what reads it.
struct RecurrenceConfig {
  MixerKind kind = MixerKind::kGatedDelta;
  int64_t key_heads = 0;    ///< heads of queries and keys
  int64_t value_heads = 0;  ///< heads of values: as many, or a multiple
  int64_t key_dim = 0;      ///< numbers of a head
  int64_t value_dim = 0;
  int64_t step_rank = 0;              ///< numbers of the vector that a selective space's steps are made of
  int64_t taps = 0;                   ///< tokens that the convolution sees, its own included
  bool taps_bias = false;             ///< the convolution has a bias
  bool has_attention = false;         ///< those layers have attention too, and the results of both are added
  MixerNorm norm = MixerNorm::kNone;  ///< a state space's
  int64_t norm_groups = 1;            ///< groups of its results that are normed each by itself
  double least_step = 0;              ///< its steps are at least this
  double most_step = std::numeric_limits<double>::infinity();
  MixerFactors factors;
  double attention_factor = 1;    ///< likewise attention's beside it
  std::vector<bool> layers = {};  ///< which layers have it; empty: none

  int64_t key_size() const { return key_heads * key_dim; }
  int64_t value_size() const { return value_heads * value_dim; }
  /// What is convolved.
  int64_t channels() const { return has_scalars() ? 2 * key_size() + value_size() : value_size(); }
  /// Numbers of a token that are kept beside its channels.
  int64_t scalars() const {
    if (!has_scalars()) return 0;
    return kind == MixerKind::kStateSpace ? value_heads : 2 * value_heads;
  }
  bool is_selective() const { return kind == MixerKind::kSelectiveSpace; }
  /// Numbers of the state.
  int64_t state_size() const { return kind == MixerKind::kShortConvolution ? 0 : value_size() * key_dim; }

 private:
  bool has_scalars() const { return kind != MixerKind::kShortConvolution && !is_selective(); }
};

}  // namespace lancet
