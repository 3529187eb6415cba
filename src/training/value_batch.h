// The forward half of value optimisation: the losses of a batch of requests as a function of their deltas. What does
// not depend on the deltas is computed once: hidden states up to the edited layer and, in the layers above, keys and
// values of the positions before each row's lookup token. A step runs only the positions from the lookup token on, for
// all rows together.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "row_states.h"

namespace lancet {

/// Differentiable losses of the resident requests, each [A] on the head's device, not weighted.
struct BatchLosses {
  Tensor nll_A;
  Tensor kl_A;      ///< at the drift row
  Tensor kept_A;    ///< the mean of KL(now, before) over a request's kept prompts; undefined if no request has any
  Tensor missed_A;  ///< number of target tokens, over the step's contexts, that are not the most probable ones;
                    ///< undefined unless asked for
};

/// What a step computes in addition to the losses.
enum class ValueWatch { kNothing, kMissedTokens };

class ValueBatch {
 public:
  /// The requests must outlive the batch.
  ValueBatch(const CausalLM& model, std::vector<const PreparedRequest*> requests, int64_t layer,
             const ValueOptions& options);

  /// Returns the number of groups of contexts. A step runs one group.
  size_t groups() const { return groups_.size(); }

  /// Returns the site's values at the plain prompt's lookup token, side by side: [N, X] in the value dtype.
  const Tensor& initial_NX() const { return initial_NX_; }

  /// Returns the requests that are still run, as ascending indices into the batch.
  const std::vector<int64_t>& resident() const { return resident_; }
  /// From now on, runs only some of the resident requests. `kept`: ascending indices into resident().
  void keep(const std::vector<int64_t>& kept);

  /// Returns the losses. `delta_AX`: the resident requests' deltas (an autograd leaf), on the edited layer's device.
  /// The nll is the mean over the group's contexts. The first call must have zero deltas and all requests resident: it
  /// stores the distributions for the KL divergence. Later calls change nothing.
  BatchLosses losses(size_t of_group, const Tensor& delta_AX, ValueWatch watch);

 private:
  /// The places at which the losses read the outputs of a group's rows. S: the number of places for a request's labels,
  /// the largest that a request needs.
  struct Labels {
    Tensor read_M;     ///< outputs of the rows: for the L labels, then for the resident requests' drift, then for the
                       ///< K prompts that they keep
    Tensor id_L;       ///< the labels' ids
    Tensor slot_L;     ///< the labels' places among the slots, request * S + place
    Tensor weight_AS;  ///< 1 / (contexts of the group * target tokens); 0 if there is no label
    Tensor more_E;     ///< the requests of the rows after those of the contexts, as indices into the resident ones, on
                       ///< the edited layer's device; undefined if there are none
    Tensor kept_AK;    ///< 1 / (prompts that the request keeps); 0 for the other requests' prompts; undefined if K is 0
  };
  /// Contexts that a step runs together. The rows are those of a request in these contexts, then those of the next
  /// request; after them come the drift rows of requests that need one of their own, and then the kept prompts, one
  /// request's after another's.
  struct ContextGroup {
    std::vector<int64_t> contexts;                      ///< indices into a request's prompts
    std::vector<std::optional<int64_t>> drift_context;  ///< for each request, the context that begins with its drift
                                                        ///< row; nullopt: it has a row of its own
    SuffixRows rows;
    Labels labels;
  };
  ContextGroup make_group(std::vector<int64_t> contexts, ValueSite site, int64_t layer) const;
  /// Sets the group's labels, and tells its rows at which places they are read.
  void set_labels(ContextGroup& group) const;
  /// Returns Labels::kept_AK for kept prompts of these resident requests.
  Tensor kept_weights(std::span<const int64_t> requests_K) const;
  /// Returns values that are not differentiable.
  Tensor initial_values(ValueSite site, int64_t layer) const;

  const CausalLM& model_;
  std::vector<const PreparedRequest*> requests_;
  at::Device edited_device_;
  std::vector<int64_t> resident_;
  std::vector<ContextGroup> groups_;
  Tensor initial_NX_;
  Tensor drift_log_probs_AV_, kept_log_probs_KV_;  ///< computed before any change
};

}  // namespace lancet
