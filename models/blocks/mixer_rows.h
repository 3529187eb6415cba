// The rows of a sequence as a recurrent mixer runs them: each row whole, from its first token on, for any kind of rows.
#pragma once

#include <vector>

#include "lancet/models/sequence_info.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// N: the number of all tokens of the pass, flat. Indices are on the layer's device.
struct MixerRows {
  std::vector<DocumentRun> runs;  ///< consecutive rows of equal width
  Tensor token_X;     ///< index of the token at each place of the rows, which may repeat; undefined: the places are the
                      ///< tokens
  Tensor place_N;     ///< index of each token among those places; undefined: the same
  Tensor earlier_RP;  ///< the tokens that each row has run before, as places of the prefix, flat, aligned to the right;
                      ///< undefined: none
  Tensor lacks_RP1;   ///< bool: true where a row has no earlier token
  Tensor length_R1;   ///< number of tokens of padded rows
};

/// Returns the rows on `device`.
MixerRows mixer_rows(const SequenceInfo& sequence, at::Device device);

}  // namespace lancet
