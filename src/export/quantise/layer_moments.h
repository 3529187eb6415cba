// What errors of a layer's matrices matter by: second moments of their inputs over text, and their inputs where edits
// were made.
#pragma once

#include <array>
#include <vector>

#include "lancet/kernels/gram.h"
#include "layer_texts.h"

namespace lancet {

/// C = E[x x^T] of each group's inputs. Of experts each one's over all tokens: those that do not go to it count as
/// zeros.
class LayerMoments {
 public:
  LayerMoments(const ModelConfig& config, int64_t layer, at::Device device);

  /// Tokens that several documents share count as often as `sequence` says.
  void add(const SequenceInfo& sequence, const LayerInputs& inputs);
  /// [in, in] f64, symmetric, in the sum's own memory: once for each.
  Tensor take(MatrixInput input, int64_t expert);

 private:
  KeyShape keys_;
  int64_t tokens_ = 0;
  std::array<std::vector<GramAccumulator>, kMatrixInputs> sums_;  ///< sums of each expert, where the input is its own
};

/// K: the inputs at some tokens.
class LayerKeys {
 public:
  LayerKeys(const ModelConfig& config, int64_t layer);

  /// Adds the inputs at the last token of each of the batch's rows.
  void add(const SequenceInfo& sequence, const LayerInputs& inputs);
  /// [in, n] f64, of an expert those of the tokens that go to it; n may be 0.
  Tensor keys(MatrixInput input, int64_t expert) const;

 private:
  KeyShape keys_;
  LayerInputs rows_;  ///< [rows, in]; undefined: none yet
};

}  // namespace lancet
