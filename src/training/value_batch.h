// The forward half of value optimisation: the losses of a batch of requests as a function of their deltas.
// What does not depend on the deltas is computed once: hidden states up to the edited layer, and, in the layers above,
// keys and values of the positions before each row's lookup token. A step runs only the positions from the lookup token
// on, of all rows together.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "row_states.h"

namespace lancet {

/// Differentiable losses of the resident requests, each [A] on the head's device, not weighted.
struct BatchLosses {
  Tensor nll_A;
  Tensor kl_A;
  Tensor missed_A;  ///< target tokens, over the step's contexts, that are not the most probable; undefined unless asked
                    ///< for
};

/// What of a step is computed beyond the losses.
enum class ValueWatch { kNothing, kMissedTokens };

class ValueBatch {
 public:
  /// The requests outlive the batch.
  ValueBatch(const CausalLM& model, std::vector<const PreparedRequest*> requests, int64_t layer,
             const ValueOptions& options);

  /// Groups of contexts; a step sees one.
  size_t groups() const { return groups_.size(); }

  /// [N, X] value dtype: the site's values at the plain prompt's lookup token, side by side.
  const Tensor& initial_NX() const { return initial_NX_; }

  /// The requests that are still run, as indices into the batch, ascending.
  const std::vector<int64_t>& resident() const { return resident_; }
  /// Runs only some of the resident requests from here on: `kept` are indices into resident(), ascending.
  void keep(const std::vector<int64_t>& kept);

  /// `delta_AX`: the resident requests' deltas (an autograd leaf), on the edited layer's device. The nll is the mean
  /// over the group's contexts. The first call is with zero deltas, all requests resident: it sets what the KL
  /// divergence is taken from. Later ones change nothing.
  BatchLosses losses(size_t of_group, const Tensor& delta_AX, ValueWatch watch);

 private:
  /// Places at which the outputs of a group's rows say what the losses need. S: places for a request's labels, as many
  /// as most requests have.
  struct Labels {
    Tensor read_M;       ///< outputs of the rows: of the L labels, then of the resident requests' drift
    Tensor id_L;         ///< the labels' ids
    Tensor slot_L;       ///< their place among the slots, request * S + place
    Tensor weight_AS;    ///< 1 / (contexts of the group * target tokens); 0: no label
    Tensor own_drift_E;  ///< the resident requests with a drift row of their own, on the edited layer's device;
                         ///< undefined: none
  };
  /// Contexts that a step runs together. Rows: a request's in these contexts, then the next request's; after them the
  /// drift rows of requests that need one of their own.
  struct ContextGroup {
    std::vector<int64_t> contexts;                      ///< indices into a request's prompts
    std::vector<std::optional<int64_t>> drift_context;  ///< each request's context that begins as its
                                                        ///< drift row; nullopt: none, it has a row of its own
    SuffixRows rows;
    Labels labels;
  };
  ContextGroup make_group(std::vector<int64_t> contexts, ValueSite site, int64_t layer) const;
  /// Sets the group's labels, and tells its rows where they are read.
  void set_labels(ContextGroup& group) const;
  /// Returns values that are not differentiable.
  Tensor initial_values(ValueSite site, int64_t layer) const;

  const CausalLM& model_;
  std::vector<const PreparedRequest*> requests_;
  at::Device edited_device_;
  std::vector<int64_t> resident_;
  std::vector<ContextGroup> groups_;
  Tensor initial_NX_;
  Tensor drift_log_probs_AV_;  ///< taken before any change
};

}  // namespace lancet
