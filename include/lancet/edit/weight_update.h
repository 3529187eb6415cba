// Changes of weights as data, and the transaction that applies them: weights are as they were unless it commits.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lancet/models/causal_lm.h"

namespace lancet {

/// W += left @ right. Column r of `left` and row r of `right` belong to the batch's request r.
struct LowRankDelta {
  Tensor left_OR;   ///< [d_out, r]
  Tensor right_RI;  ///< [r, d_in]
};

struct DenseDelta {
  Tensor full_OI;  ///< [d_out, d_in]
};

using WeightDelta = std::variant<LowRankDelta, DenseDelta>;

/// [d_out, d_in], in the delta's own dtype, on its device.
Tensor to_dense(const WeightDelta& delta);

/// What rounding to the export dtype did to one edited weight.
struct RoundingLoss {
  WeightId id;
  double delta_norm = 0;     ///< Frobenius norm of the whole change
  double weight_norm = 0;    ///< of the unedited weight
  double relative_loss = 0;  ///< ||rounded - exact|| / ||change||
};

class WeightTransaction {
 public:
  explicit WeightTransaction(CausalLM& model) : model_(model) {}
  ~WeightTransaction();  ///< rolls back unless committed
  WeightTransaction(const WeightTransaction&) = delete;
  WeightTransaction& operator=(const WeightTransaction&) = delete;

  struct Entry {
    WeightId id;
    Tensor original;  ///< the model's own tensor from before (shared, never written to)
    Tensor master;    ///< original + all deltas, in the placement's value dtype, on the weight's device
    std::vector<WeightDelta> deltas;
  };

  /// Adds to the master and puts the master, in the weight dtype, in the model.
  /// Throws: PlacementError / std::logic_error for a delta on another device or of another shape; NumericError when it
  /// has NaN or Inf.
  void apply(WeightId id, WeightDelta delta);

  /// Puts masters rounded to the type they are stored in into the model, so that what is measured is what is exported.
  std::vector<RoundingLoss> round_to(const std::function<at::ScalarType(WeightId)>& stored_type);

  /// In the order of the first change.
  const std::vector<Entry>& entries() const { return entries_; }

  void commit() { entries_.clear(); }
  void rollback();

 private:
  CausalLM& model_;
  std::vector<Entry> entries_;
};

}  // namespace lancet
