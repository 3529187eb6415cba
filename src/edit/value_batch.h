// The forward half of value optimisation: the losses of a batch of requests as a function of their deltas.
#pragma once

#include <span>
#include <vector>

#include "lancet/edit/values.h"

namespace lancet {

/// Differentiable losses of the requests asked for, each [A] on the head's device.
struct BatchLosses {
  Tensor nll_A;
  Tensor kl_A;  ///< not weighted
};

class ValueBatch {
 public:
  /// Runs the layers up to and including `layer` once; their output is constant from here on.
  ValueBatch(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer);

  /// [N, D] value dtype: output of `layer` at the plain prompt's lookup token.
  const Tensor& initial_ND() const { return initial_ND_; }

  /// `active`: indices of requests; `delta_AD`: their deltas (an autograd leaf), on the edited layer's device. The
  /// first call must be with all requests and zero deltas: it sets what the KL divergence is taken from.
  BatchLosses losses(const std::vector<int64_t>& active, const Tensor& delta_AD);

 private:
  /// Rows and label positions of the active requests; made anew only when a request leaves.
  struct ActiveRows {
    std::vector<int64_t> requests;
    Tensor hidden_RTD;  ///< output of the edited layer
    SequenceInfo sequence;
    Tensor lookup_row_R;      ///< flat index row * T + lookup, on the edited layer's device
    Tensor request_of_row_R;  ///< index into the active requests, likewise
    Tensor
        read_M;  ///< flat indices of the positions whose logits are needed: labels, then one drift position per request
    Tensor label_ids_L;      ///< on the head's device
    Tensor label_request_L;  ///< index into the active requests
    Tensor label_weight_L;   ///< 1 / (contexts * target tokens)
  };
  void select(const std::vector<int64_t>& active);

  const CausalLM& model_;
  std::span<const PreparedRequest> requests_;
  int64_t layer_;
  int64_t n_contexts_;
  SequenceInfo sequence_;
  Tensor hidden_RTD_;
  Tensor initial_ND_;
  Tensor drift_log_probs_NV_;
  ActiveRows rows_;
};

}  // namespace lancet
