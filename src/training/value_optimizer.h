// The optimisation of one batch of requests: losses (value_batch.h), gradients, Adam, stopping.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lancet/runtime/step_graph.h"
#include "lancet/training/values.h"
#include "value_batch.h"

namespace lancet {

/// Results in the batch's order. `note_step(n)`: a step more is done, and with it n requests.
/// Throws: NumericError when a loss is not finite.
OptimizedValues optimize_batch(const CausalLM& model, const std::vector<const PreparedRequest*>& requests,
                               int64_t layer, const ValueOptions& options, LaunchMode launch,
                               const std::function<void(int64_t)>& note_step);

// A step of value optimisation: from the resident requests' deltas to what the host wants to know of it and to the
// gradient. Where the placement asks for graphs a step that has run once is captured and from then on replayed.

/// Norms of the `n_vectors` that lie side by side in each row: [rows, P].
Tensor norms_of(const Tensor& rows_AX, int64_t n_vectors);

/// What a step's losses are taken from. Shapes stay while the same requests are resident, and so does
/// `initial_norm_AP`.
struct StepInputs {
  Tensor delta_AX;
  Tensor initial_norm_AP;  ///< ||h0|| of each of the site's vectors
  Tensor factor_A;         ///< factor of the NLL, on the head's device; undefined: 1
};

/// Weighted, each [A] on the head's device, in this order; `missed_A` (BatchLosses) after them where it is watched.
enum class StepPart : size_t { kTotal, kNll, kKl, kWeightDecay, kMissed };

class ValueStep {
 public:
  /// `graphs` may be null: every step is launched operation by operation. All outlive this.
  ValueStep(ValueBatch& batch, const ValueOptions& options, ValueWatch watch, StepGraphs* graphs);

  /// The losses at these deltas, over the next group of contexts. What is returned is good until the next step.
  std::vector<Tensor> measure(const StepInputs& inputs);

  /// [A, X] of the last measured losses' sum; good until the next step.
  Tensor gradient();

  /// Forgets the shapes, before other requests are resident: the next steps have other ones.
  void forget_shapes();

 private:
  /// Differentiable; StepPart says which.
  std::vector<Tensor> losses(size_t group, const StepInputs& inputs) const;
  /// Losses and gradient by a graph, which is captured if there is none yet.
  const std::vector<Tensor>& replay(size_t group, const StepInputs& inputs);
  void set_static_inputs(const StepInputs& inputs);

  /// State of one group of contexts, for these shapes.
  struct GroupState {
    bool has_run = false;  ///< so that libraries are loaded
    std::unique_ptr<StepGraph> graph;
  };

  ValueBatch& batch_;
  const ValueOptions& options_;
  ValueWatch watch_;
  StepGraphs* graphs_;
  std::vector<GroupState> groups_;
  size_t next_ = 0;
  StepInputs static_;     ///< inputs of all graphs; undefined: there are none
  Tensor seen_factor_A_;  ///< what static_.factor_A was last set from
  // of the last step
  Tensor leaf_AX_;
  Tensor total_A_;
  Tensor gradient_AX_;  ///< undefined: is yet to be computed
};

}  // namespace lancet
