// Texts on their way through a model, a layer at a time, while its weights are exchanged from below.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "packing_plan.h"

namespace lancet {

/// What a layer's matrices read of a batch's tokens, by MatrixInput: [tokens, in] in the model's dtype, on the layer's
/// device. MLP keys of experts: one expert's after the other's, zeros where a token does not go (KeyShape). Undefined
/// where has_input() says that there is none.
using LayerInputs = std::array<Tensor, kMatrixInputs>;

class LayerTexts {
 public:
  /// `model` outlives this. Embeds the batches; their hidden states are kept on the host.
  LayerTexts(const CausalLM& model, std::vector<TokenBatch> batches);

  /// Runs layer `layer`, at whose input the texts are, up to what its down projections read, batch by batch.
  void see_inputs(int64_t layer, const std::function<void(const SequenceInfo&, const LayerInputs&)>& see) const;
  /// Runs the layer with its weights as they are: the texts are at the next one's input.
  void advance(int64_t layer);

  /// Returns the bytes of the hidden states: tokens * d_model numbers of the model's dtype.
  int64_t kept_bytes() const;

 private:
  struct Text {
    TokenBatch batch;
    Tensor h_BTD;
  };

  const CausalLM& model_;
  std::vector<Text> texts_;
};

}  // namespace lancet
