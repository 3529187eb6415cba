// The optimisation of one batch of requests: losses (value_batch.h), gradients, Adam, stopping.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lancet/runtime/step_graph.h"
#include "lancet/training/values.h"
#include "value_batch.h"

namespace lancet {

/// Returns the results in the batch's order. `note_step(n)` is called after each step; n requests were finished in it.
/// Throws: NumericError if a loss is not finite.
OptimizedValues optimize_batch(const CausalLM& model, const std::vector<const PreparedRequest*>& requests,
                               int64_t layer, const ValueOptions& options, LaunchMode launch,
                               const std::function<void(int64_t)>& note_step);

// A step of value optimisation: from the resident requests' deltas it computes the gradient, and everything that the
// host needs to know. If the placement asks for graphs, a step that has run once is captured, and from then on
// replayed.

/// Returns the norms of the `n_vectors` that are side by side in each row: [rows, P].
Tensor norms_of(const Tensor& rows_AX, int64_t n_vectors);

/// The inputs of a step's losses. While the same requests are resident, shapes stay the same, and so does
/// `initial_norm_AP`.
struct StepInputs {
  Tensor delta_AX;
  Tensor initial_norm_AP;  ///< ||h0|| of each of the site's vectors
  Tensor factor_A;         ///< factor of the NLL, on the head's device; undefined: 1
};

/// The weighted losses, each [A] on the head's device, in this order. `missed_A` (BatchLosses) follows them if it is
/// watched.
enum class StepPart : size_t { kTotal, kNll, kKl, kWeightDecay, kMissed };

class ValueStep {
 public:
  /// `graphs`: null if every step is launched operation by operation. All arguments must outlive this object.
  ValueStep(ValueBatch& batch, const ValueOptions& options, ValueWatch watch, StepGraphs* graphs);

  /// Returns the losses at these deltas, over the next group of contexts. They are valid until the next step.
  std::vector<Tensor> measure(const StepInputs& inputs);

  /// Returns the gradient [A, X] of the sum of the last measured losses. It is valid until the next step.
  Tensor gradient();

  /// Forgets the shapes, before other requests become resident.
  void forget_shapes();

 private:
  /// Returns differentiable losses in the order of StepPart.
  std::vector<Tensor> losses(size_t group, const StepInputs& inputs) const;
  /// Computes losses and gradient with a graph, which is captured if there is none yet.
  const std::vector<Tensor>& replay(size_t group, const StepInputs& inputs);
  void set_static_inputs(const StepInputs& inputs);

  /// The state of one group of contexts, for the current shapes.
  struct GroupState {
    bool has_run = false;  ///< needed before a capture, so that libraries are loaded
    std::unique_ptr<StepGraph> graph;
  };

  ValueBatch& batch_;
  const ValueOptions& options_;
  ValueWatch watch_;
  StepGraphs* graphs_;
  std::vector<GroupState> groups_;
  size_t next_ = 0;
  StepInputs static_;     ///< inputs of all graphs; undefined if there are none
  Tensor seen_factor_A_;  ///< the tensor from which static_.factor_A was last set
  // those of the last step
  Tensor leaf_AX_;
  Tensor total_A_;
  Tensor gradient_AX_;  ///< undefined: not computed yet
};

}  // namespace lancet
