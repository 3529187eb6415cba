// The second half of a locate-then-edit batch: layer after layer takes its share of what the values ask for, once or in
// several passes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/editor_parts/layered_options.h"

namespace lancet {

// How far a batch's changes bring its keys to their targets. Algebra on what the solves had in hand: no pass through
// the model. What later batches, `prune` and rounding do to it is not in it.

/// One layer's change, for targets that stand in the columns in the same order.
struct LayerChange {
  int64_t layer = 0;
  Tensor keys_FN;
  Tensor residuals_DN;       ///< what the layer was asked for
  bool is_last = true;       ///< whether the pass ends with this layer
  const WeightDelta& delta;  ///< the change that was applied
};

class RealisedShares {
 public:
  /// `n_targets`: of the batch, whichever of them a pass takes.
  RealisedShares(const EditContext& context, int64_t n_targets) : context_(context), n_targets_(n_targets) {}

  /// Notes z* - h of the last layer before a pass changes any. The first of a target counts.
  void note_missing(const Tensor& missing_DN, const std::vector<int64_t>& targets);

  /// Collective. `targets`: of the columns, among the batch's. A pass that comes back to a layer adds to its share.
  void note(const LayerChange& change, const std::vector<int64_t>& targets);

  bool empty() const { return by_layer_.empty(); }

  /// Writes the shares of a request's targets, of several the least.
  void write_to(RequestOutcome& outcome, std::span<const int64_t> targets) const;

 private:
  /// <given, asked> and ||asked||^2.
  struct Sums {
    double given = 0, asked = 0;
  };

  const EditContext& context_;
  int64_t n_targets_;
  std::map<int64_t, std::vector<Sums>> by_layer_;  ///< one for each target
  std::vector<Sums> in_all_ = std::vector<Sums>(static_cast<size_t>(n_targets_));
  std::vector<bool> has_first_ = std::vector<bool>(static_cast<size_t>(n_targets_));
  Tensor first_DT_;  ///< z* - h of each target before the first pass that takes it: z* - h0
};

/// One layer's share of a batch, on its solve device.
struct LayerProblem {
  int64_t layer = 0;
  Tensor keys_FN;
  Tensor directions_FN;  ///< the requests' keys by another mean, where the method asks for one
  Tensor history_FM;     ///< keys that are left as they are; undefined: none
  Tensor residuals_DN;
  double weight = 0;  ///< the method's SolveWeight for this layer
};

/// The point of a layer at which a method's values are, and at which residuals are taken.
HookPoint value_point(const ModelConfig& config, ValueSite site);

/// Returns by what a down projection's output is multiplied on its way to that point.
double projection_scale(const ModelConfig& config, ValueSite site);

/// What a method makes of it.
struct LayerSolution {
  LayerSolution(LowRankDelta delta, Tensor inverse_NN = {})
      : change(std::move(delta)), inverse_gram_NN(std::move(inverse_NN)) {}

  LowRankDelta change;     ///< one column for each key, in their order
  Tensor inverse_gram_NN;  ///< SolvedSystem::inverse_gram_NN
};

/// What the layers are to reach: a target for each key.
struct LayerTargets {
  std::vector<PreparedRequest> requests;
  std::map<int64_t, Tensor> z_ND;  ///< targets of the last layer alone, or with LayerTarget::kReplay of each
  KeyGroups groups;                ///< places among the members that share each key
  std::vector<int64_t> members;    ///< the batch's requests that take part, with those that were left out; one that
                                   ///< has several targets stands there as often
  std::vector<int64_t> places;     ///< places of these targets among all of a batch
  /// Places of the requests' texts whose keys are left as they are.
  std::vector<PreparedRequest> others = {};

  LayerTargets those(const std::vector<bool>& chosen) const;
  /// The first of the batch's requests that share the target's key.
  int64_t request_of(size_t target) const;
};

/// Passes over the layers for a batch under way.
class LayerPasses {
 public:
  /// What the method brings; both run on root alone.
  struct Method {
    /// The change of a layer's down projection.
    std::function<LayerSolution(const LayerProblem& problem)> solve;
    /// Gives for each key what its share of the residual depends on besides the weight (SolveWeight).
    std::function<Tensor(const LayerProblem& problem)> leverages;
  };

  struct Batch {
    const EditContext& context;
    EditorState& state;
    WeightTransaction& transaction;
    EditOutcome& outcome;
  };

  LayerPasses(const LayeredOptions& options, const Batch& batch, Method method)
      : options_(options), batch_(batch), method_(std::move(method)) {}

  /// Passes over the layers until all targets are near enough, or there were enough. Returns how many: so many changes
  /// each of the layers got, in columns that are the members.
  int64_t run(const LayerTargets& targets, std::span<const int64_t> layers) const;

 private:
  std::vector<bool> choose(const LayerTargets& targets, int64_t last, ResidualBounds& bounds) const;
  ResidualBounds bounds_by(const Tensor& norm_N, int64_t last) const;
  void change_layers(const LayerTargets& targets, std::span<const int64_t> layers, RealisedShares& realised) const;
  void change_nothing(int64_t layer, int64_t n_members) const;
  void keep_keys(const LayerTargets& targets, std::span<const int64_t> layers) const;
  Tensor missing(RequestStates& states, const LayerTargets& targets, int64_t layer) const;
  Tensor of_projection(const Tensor& missing_ND) const;
  void note_system(const LayerProblem& problem, const LayerTargets& targets, Tensor inverse_gram_NN) const;
  WeightDelta change_layer(const LayerProblem& problem, const LayerTargets& targets) const;
  Tensor lost_by_filters(int64_t layer) const;
  WeightDelta apply(int64_t layer, const WeightDelta& wanted) const;
  void note_near_keys(const LayerTargets& targets, const Tensor& keys_FN) const;
  double parts(size_t layers_left) const;
  Tensor residuals(RequestStates& states, const LayerTargets& targets, std::span<const int64_t> layers_left) const;

  const LayeredOptions& options_;
  const Batch& batch_;
  Method method_;
};

// How much the statistics weigh against the requests: A = lambda C + nu I, for methods that take both.

/// L of L L^T = A / lambda, [F, F], lambda being the problem's weight. Only within EditContext::solve, as
/// covariance_factor.
Tensor weighted_factor(const EditContext& context, const LayerProblem& problem, double identity_weight);

}  // namespace lancet
