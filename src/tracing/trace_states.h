// The clean and the corrupted runs of some facts, and the states that are kept of them for runs that restore states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/tracing/causal_trace.h"

namespace lancet {

/// Returns the probability of one token for each row: h [N, D] at the last layer's output. [N] f64 on the host.
Tensor token_probabilities(const CausalLM& model, const Tensor& h_ND, const std::vector<int64_t>& tokens);

/// Base rows: for each fact one clean row and then `samples` corrupted rows, padded to the longest prompt. Each tensor
/// is on the device of its layer.
struct TraceStates {
  TraceStates(const CausalLM& model, std::span<const TracedFact> facts, const TraceOptions& options);

  int64_t clean_row(size_t fact) const { return static_cast<int64_t>(fact) * (samples + 1); }

  /// Returns the clean rows' outputs of attention, or of the MLP; undefined for a layer without this part.
  const std::vector<Tensor>& outputs(TraceKind kind) const { return kind == TraceKind::kMlp ? mlp_FTD : attention_FTD; }
  /// Whether some of the layers have that part.
  bool has_any(TraceKind kind, LayerRange layers) const {
    for (int64_t layer = layers.begin; layer < layers.end; ++layer)
      if (outputs(kind)[static_cast<size_t>(layer)].defined()) return true;
    return false;
  }

  int64_t samples;
  int64_t width = 0;               ///< number of tokens of the longest prompt
  KeyValues cache;                 ///< keys and values of all base rows
  std::vector<Tensor> inputs_BTD;  ///< one for each layer, for all base rows
  std::vector<Tensor> mlp_FTD;     ///< one for each layer: outputs of the clean rows
  std::vector<Tensor> attention_FTD;
  std::vector<double> clean;  ///< the object's probability for each fact
  std::vector<double> corrupted;
};

}  // namespace lancet
