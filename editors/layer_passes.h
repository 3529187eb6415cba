// The second half of a locate-then-edit batch: layer after layer takes its share of what the values ask for, once or in
// several passes.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "layered_options.h"

namespace lancet {

/// One layer's share of a batch, on its solve device.
struct LayerProblem {
  int64_t layer = 0;
  Tensor keys_FN;
  Tensor directions_FN;  ///< the requests' keys by another mean, where the method asks for one
  Tensor history_FM;     ///< undefined: none
  Tensor residuals_DN;
};

/// What the layers are to reach: a target for each key.
struct LayerTargets {
  std::vector<PreparedRequest> requests;
  Tensor z_ND;
  KeyGroups groups;              ///< places among the members that share each key
  std::vector<int64_t> members;  ///< the batch's requests that take part, with those that were left out

  LayerTargets those(const std::vector<bool>& chosen) const;
};

/// Of a batch under way.
class LayerPasses {
 public:
  /// The change of a layer's down projection: one column for each key, in their order.
  using Solve = std::function<LowRankDelta(const LayerProblem& problem)>;

  struct Batch {
    const EditContext& context;
    EditorState& state;
    WeightTransaction& transaction;
    EditOutcome& outcome;
  };

  LayerPasses(const LayeredOptions& options, const Batch& batch, Solve solve)
      : options_(options), batch_(batch), solve_(std::move(solve)) {}

  /// Passes over the layers until all targets are near enough, or there were enough. Returns how many: so many changes
  /// each of the layers got, in columns that are the members.
  int64_t run(const LayerTargets& targets, std::span<const int64_t> layers) const;

 private:
  std::vector<bool> choose(const LayerTargets& targets, int64_t last) const;
  void change_layers(const LayerTargets& targets, std::span<const int64_t> layers, bool warns) const;
  void change_nothing(int64_t layer, int64_t n_members) const;
  void keep_keys(const LayerTargets& targets, std::span<const int64_t> layers) const;
  Tensor missing(RequestStates& states, const Tensor& z_ND, int64_t last) const;
  Tensor residuals(RequestStates& states, const Tensor& z_ND, std::span<const int64_t> layers_left) const;

  const LayeredOptions& options_;
  const Batch& batch_;
  Solve solve_;
};

}  // namespace lancet
