// The second half of a locate-then-edit batch: each layer in turn takes its share of the change that the values ask
// for, in one pass or several.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/editor_parts/layered_options.h"

namespace lancet {

// How far a batch's changes bring its keys to their targets. Computed from what the solves used, without a pass through
// the model. Effects of later batches, of `prune` and of rounding are not included.

/// One layer's change. The columns of the tensors are the targets, in the same order.
struct LayerChange {
  int64_t layer = 0;
  Tensor keys_FN;
  Tensor residuals_DN;       ///< the change of value that the layer should achieve
  bool is_last = true;       ///< whether the pass ends with this layer
  const WeightDelta& delta;  ///< the change that was applied
};

class RealisedShares {
 public:
  /// `n_targets`: the number of targets of the batch, however many of them a pass takes.
  RealisedShares(const EditContext& context, int64_t n_targets) : context_(context), n_targets_(n_targets) {}

  /// Records z* - h of the last layer before a pass changes any. The first record of a target counts.
  void note_missing(const Tensor& missing_DN, const std::vector<int64_t>& targets);

  /// Collective. `targets`: the batch's targets that the columns belong to. Passes that return to a layer add to its
  /// share.
  void note(const LayerChange& change, const std::vector<int64_t>& targets);

  bool empty() const { return by_layer_.empty(); }

  /// Writes the shares of a request's targets; if there are several targets, the least share.
  void write_to(RequestOutcome& outcome, std::span<const int64_t> targets) const;

 private:
  /// <given, asked> and ||asked||^2.
  struct Sums {
    double given = 0, asked = 0;
  };

  const EditContext& context_;
  int64_t n_targets_;
  std::map<int64_t, std::vector<Sums>> by_layer_;  ///< one per target
  std::vector<Sums> in_all_ = std::vector<Sums>(static_cast<size_t>(n_targets_));
  std::vector<bool> has_first_ = std::vector<bool>(static_cast<size_t>(n_targets_));
  Tensor first_DT_;  ///< z* - h of each target before its first pass: z* - h0
};

/// The problem that one layer solves for a batch, on its solve device.
struct LayerProblem {
  int64_t layer = 0;
  Tensor keys_FN;
  Tensor directions_FN;  ///< the requests' keys by another mean, if the method asks for one
  Tensor history_FM;     ///< keys whose values are preserved; undefined: none
  Tensor residuals_DN;
  double weight = 0;  ///< the method's SolveWeight for this layer
};

/// Returns the point of a layer at which a method's values are found and residuals are taken.
HookPoint value_point(const ModelConfig& config, ValueSite site);

/// Returns the factor by which a down projection's output is multiplied before it reaches that point.
double projection_scale(const ModelConfig& config, ValueSite site);

/// The method's solution of a LayerProblem.
struct LayerSolution {
  LayerSolution(LowRankDelta delta, Tensor inverse_NN = {})
      : change(std::move(delta)), inverse_gram_NN(std::move(inverse_NN)) {}

  LowRankDelta change;     ///< one column for each key, in their order
  Tensor inverse_gram_NN;  ///< SolvedSystem::inverse_gram_NN
};

/// The targets of the layers, one for each key.
struct LayerTargets {
  std::vector<PreparedRequest> requests;
  std::map<int64_t, Tensor> z_ND;  ///< targets of the last layer alone, or, with LayerTarget::kReplay, of each layer
  KeyGroups groups;                ///< for each key, the places of the members that share it
  /// The batch's requests that take part, and those that were left out; a request appears once per target.
  std::vector<int64_t> members;
  std::vector<int64_t> places;  ///< places of these targets among all targets of a batch
  /// Places in the requests' texts whose keys are preserved.
  std::vector<PreparedRequest> others = {};

  LayerTargets those(const std::vector<bool>& chosen) const;
  /// Returns the first of the batch's requests that share the target's key.
  int64_t request_of(size_t target) const;
};

/// Passes over the layers for a batch.
class LayerPasses {
 public:
  /// The functions of the method. Both run on root alone.
  struct Method {
    /// Returns the change of a layer's down projection.
    std::function<LayerSolution(const LayerProblem& problem)> solve;
    /// Returns for each key what its share of the residual depends on besides the weight (SolveWeight).
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

  /// Repeats passes over the layers until all targets are near enough, or until the maximum number of passes. Returns
  /// the number of passes: each layer got as many changes, whose columns are the members.
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

// How much the statistics weigh against the requests: A = lambda C + nu I, for methods that use both terms.

/// Returns L of L L^T = A / lambda, [F, F], where lambda is the problem's weight. Only within EditContext::solve, as
/// covariance_factor.
Tensor weighted_factor(const EditContext& context, const LayerProblem& problem, double identity_weight);

}  // namespace lancet
