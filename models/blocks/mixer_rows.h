// The rows of a sequence as a recurrent mixer runs them: each whole, from its first token on, whatever kind of rows the
// sequence has.
#pragma once

#include <vector>

#include "lancet/models/sequence_info.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// N: all tokens of the pass, flat. Indices lie on the layer's device.
struct MixerRows {
  std::vector<DocumentRun> runs;  ///< rows of equal width that follow one another
  Tensor token_X;                 ///< token at each place of the rows, which may repeat; undefined: they are the tokens
  Tensor place_N;                 ///< place of each token among those; undefined: the same
  Tensor earlier_RP;  ///< what each row has run before, as places of the prefix, flat, the last ones on the right;
                      ///< undefined: nothing
  Tensor lacks_RP1;   ///< bool: true where a row has no earlier token there
  Tensor length_R1;   ///< tokens of padded rows
};

/// Returns the rows on `device`.
MixerRows mixer_rows(const SequenceInfo& sequence, at::Device device);

}  // namespace lancet
