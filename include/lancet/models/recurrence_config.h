// Recurrent mixers, which layers of hybrid models have in the place of attention.
#pragma once

#include <cstdint>
#include <vector>

namespace lancet {

/// Layers whose tokens are mixed by a state that goes from token to token in the place of attention: the gated delta
/// rule, after a short convolution of queries, keys and values (arXiv 2412.06464, as Qwen3-Next has it).
struct RecurrenceConfig {
  int64_t key_heads = 0;    ///< heads of queries and keys
  int64_t value_heads = 0;  ///< heads of values: as many, or a multiple
  int64_t key_dim = 0;      ///< numbers of a head
  int64_t value_dim = 0;
  int64_t taps = 0;               ///< tokens that the convolution sees, its own included
  std::vector<bool> layers = {};  ///< which layers have it; empty: none

  int64_t key_size() const { return key_heads * key_dim; }
  int64_t value_size() const { return value_heads * value_dim; }
  int64_t channels() const { return 2 * key_size() + value_size(); }  ///< what is convolved
};

}  // namespace lancet
