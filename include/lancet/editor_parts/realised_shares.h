// How far a batch's changes bring its keys to their targets. Algebra on what the solves had in hand: no pass through
// the model. What later batches, `prune` and rounding do to it is not in it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "lancet/editing/editor.h"

namespace lancet {

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

}  // namespace lancet
