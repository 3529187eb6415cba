// The forward half of value optimisation: the losses of a batch of requests as a function of their deltas.
// What does not depend on the deltas is computed once: hidden states up to the edited layer, and, in the layers above,
// keys and values of the positions before each row's lookup token. A step runs only the positions from the lookup token
// on.
#pragma once

#include <span>
#include <vector>

#include "lancet/edit/values.h"

namespace lancet {

/// Differentiable losses of the resident requests, each [A] on the head's device.
struct BatchLosses {
  Tensor nll_A;
  Tensor kl_A;  ///< not weighted
};

/// Rows with an equal number of them per request, cut at their lookup token.
class SuffixRows {
 public:
  /// `ids`: whole rows; `lookups`: their lookup tokens. Runs every layer on what lies before the lookup tokens.
  SuffixRows(const CausalLM& model, std::span<const std::vector<TokenId>> ids, std::span<const int64_t> lookups,
             int64_t layer);

  /// [R, D]: output of the edited layer at the lookup tokens.
  Tensor lookup_hidden() const { return hidden_RTD_.select(1, 0); }
  int64_t width() const { return hidden_RTD_.size(1); }

  /// Some of the rows, in the order given.
  SuffixRows select(const std::vector<int64_t>& rows) const;

  /// Output of the last layer [R, O, D] at `outputs_RO`, places counted from the lookup tokens (undefined: all places),
  /// with `added_RD` added to the edited layer's output at the lookup tokens.
  Tensor run(const CausalLM& model, const Tensor& added_RD, const Tensor& outputs_RO) const;

 private:
  SuffixRows() = default;

  int64_t layer_ = 0;
  Tensor hidden_RTD_;  ///< output of the edited layer from the lookup tokens on
  SequenceInfo suffix_;
  KeyValues prefix_;  ///< of the layers above the edited one
};

class ValueBatch {
 public:
  /// The requests outlive the batch.
  ValueBatch(const CausalLM& model, std::vector<const PreparedRequest*> requests, int64_t layer,
             int64_t contexts_per_step);

  /// Calls of losses() that see every context once.
  size_t groups() const { return groups_.size(); }

  /// [N, D] value dtype: output of `layer` at the plain prompt's lookup token.
  const Tensor& initial_ND() const { return initial_ND_; }

  /// The requests that are still run, as indices into the batch, ascending.
  const std::vector<int64_t>& resident() const { return resident_; }
  /// Runs only some of the resident requests from here on: `kept` are indices into resident(), ascending.
  void keep(const std::vector<int64_t>& kept);

  /// `delta_AD`: the resident requests' deltas (an autograd leaf), on the edited layer's device. The first call is with
  /// zero deltas, all requests resident: it sets what the KL divergence is taken from. Each call sees the next group of
  /// contexts; the nll is the mean over these.
  BatchLosses losses(const Tensor& delta_AD);

 private:
  /// Which places of the suffix rows predict the resident requests' target tokens.
  struct Labels {
    Tensor outputs_RO;  ///< places from the lookup tokens on, host; O: tokens of the longest target
    Tensor position_L;  ///< flat index row * O + place among the outputs, on the head's device
    Tensor id_L;
    Tensor request_L;  ///< index into the resident requests
    Tensor weight_L;   ///< 1 / (contexts of the group * target tokens)
  };
  /// Contexts that a step runs together.
  struct ContextGroup {
    std::vector<int64_t> contexts;  ///< indices into a request's prompts
    SuffixRows rows;                ///< a request's in these contexts, then the next request's
    Labels labels;
  };
  Labels make_labels(const std::vector<int64_t>& contexts) const;
  /// Of the last layer's outputs [M, D]: [M, V] value dtype, on the head's device.
  Tensor log_probs(const Tensor& last_MD) const;

  const CausalLM& model_;
  std::vector<const PreparedRequest*> requests_;
  std::vector<int64_t> resident_;
  std::vector<ContextGroup> groups_;
  size_t next_ = 0;   ///< group of the next call of losses()
  SuffixRows drift_;  ///< one row per request
  Tensor initial_ND_;
  Tensor drift_log_probs_AV_;  ///< before any change
};

}  // namespace lancet
