// The sums of a pass over text, one for each layer, whatever is summed. They can be saved, restored and added over
// ranks. Defined in partial_sums.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/core/progress.h"
#include "lancet/kernels/gram.h"
#include "lancet/models/causal_lm.h"
#include "lancet/statistics/covariance.h"
#include "lancet/statistics/moment_source.h"
#include "lancet/statistics/partial_sums.h"

namespace lancet {

/// The sum of one layer, or the sums of its experts.
class LayerSums {
 public:
  LayerSums(KeyShape rows, const Placement& placement, int64_t layer);

  /// Adds rows [N, F] on the layer's device.
  void add(const Tensor& rows_NF, RowCounts& counts);
  int64_t rows() const { return sums_.front().rows(); }
  Tensor panels() const;
  void restore(const Tensor& panels, int64_t rows);
  void sum_over(Communicator& communicator);
  Tensor take_mean() &&;

 private:
  std::vector<GramAccumulator> sums_;
};

/// The sums of all layers.
class MomentSums {
 public:
  /// `model` must outlive the sums. `layers`: ascending.
  MomentSums(const CausalLM& model, MomentSide side, std::span<const int64_t> layers);

  /// Returns the sum of the layer with this index among the layers.
  LayerSums& of(size_t place) { return sums_[place]; }
  /// Returns what to save of the sums after `chunks` chunks.
  SavedPass after(int64_t chunks) const;
  /// Restores the sums that an earlier run saved of the same pass over `tokens` tokens. Returns after how many chunks
  /// they were saved; 0 if there are none.
  int64_t go_on_from(const PartialSums* saves, int64_t tokens, Progress& progress);
  /// Collective. Adds the sums of all ranks.
  void sum_over(Communicator& communicator);
  /// Returns the means. Throws: NumericError if a mean is not finite.
  std::vector<Covariance> take() &&;

 private:
  const CausalLM& model_;
  MomentSide side_;
  std::vector<int64_t> layers_;
  std::vector<LayerSums> sums_;
};

}  // namespace lancet
