// Changes of weights as data, and the transaction that applies them. Without a commit the weights are restored.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lancet/models/causal_lm.h"

namespace lancet {

/// W += left @ right. EditOutcome::columns says which request each column belongs to.
struct LowRankDelta {
  Tensor left_OR;   ///< [d_out, r]
  Tensor right_RI;  ///< [r, d_in]
};

struct DenseDelta {
  Tensor full_OI;  ///< [d_out, d_in]
};

using WeightDelta = std::variant<LowRankDelta, DenseDelta>;

/// Returns the change as a matrix [d_out, d_in], in the delta's own dtype, on its device.
Tensor to_dense(const WeightDelta& delta);

/// Returns the delta in the layout in which files and other ranks return it. Products of equal numbers in another
/// layout may differ in the last bit.
WeightDelta contiguous(const WeightDelta& delta);

/// Returns how many directions the changes of one weight can have together: the number of columns of their factors, or
/// the smaller side of the weight if one change is dense.
int64_t directions_of(std::span<const WeightDelta> deltas);

/// Returns the delta with the same numbers on `device`.
WeightDelta moved_to(const WeightDelta& delta, at::Device device);

/// The effect of rounding one edited weight to its stored type.
struct RoundingLoss {
  WeightId id;
  double delta_norm = 0;     ///< Frobenius norm of the whole change
  double weight_norm = 0;    ///< norm of the unedited weight
  double relative_loss = 0;  ///< ||rounded - exact|| / ||change||

  /// Returns the change's norm divided by the weight's; 0 for a weight of zeros.
  double growth() const { return weight_norm > 0 ? delta_norm / weight_norm : 0; }
};

class WeightTransaction {
 public:
  /// Returns a weight as the checkpoint stores it. A model that runs in a narrower type has lost part of it.
  using StoredWeight = std::function<Tensor(WeightId)>;

  /// `stored` returns the weights that are changed; if it is empty, the model's own weights are.
  explicit WeightTransaction(CausalLM& model, StoredWeight stored = {}) : model_(model), stored_(std::move(stored)) {}
  ~WeightTransaction();  ///< rolls back unless committed
  WeightTransaction(const WeightTransaction&) = delete;
  WeightTransaction& operator=(const WeightTransaction&) = delete;

  struct Entry {
    WeightId id;
    /// The model's own tensor from before, never written to; a copy if it is solved on another device.
    Tensor original;
    Tensor base;    ///< the weight as stored, or `original`
    Tensor master;  ///< base + all deltas, in the placement's value dtype, on the layer's solve device
    std::vector<WeightDelta> deltas;
    std::string key = {};  ///< hash of the bytes of the first `n_in_key` deltas
    size_t n_in_key = 0;
  };

  /// Adds the delta to the master, and puts the master, in the weight dtype, into the model. Returns the change as it
  /// was applied; the reference is valid until the next apply(). Throws: PlacementError for a delta that is not on the
  /// layer's solve device; std::logic_error for a delta of another shape; NumericError if it has NaN or Inf, is too
  /// large to have a norm, or makes the weight leave the range of its dtype.
  const WeightDelta& apply(WeightId id, WeightDelta delta);

  /// Returns a weight as a reader of the output gets it: [d_out, d_in] in the master's type, on its device.
  using ReadBack = std::function<Tensor(const Entry&)>;
  /// Sets how weights are read back. Empty, the default: the master rounded to the type in which the weight is stored.
  void write_as(ReadBack read_back) { read_back_ = std::move(read_back); }

  /// Puts every weight into the model as a reader of the output gets it, so that the exported weights are measured. The
  /// masters stay exact. Throws: NumericError if a weight leaves the range of the type in which it is stored.
  std::vector<RoundingLoss> round_as_written();
  /// Puts the weights from before the first change into the model. The masters stay.
  void put_unedited();
  /// Puts the exact masters back into the model: the next change is made on them.
  void put_exact();

  /// Returns a hash of the bytes of all changes. Together with the unedited model's hash it identifies the current
  /// weights.
  std::string changes_key();

  /// Changes every delta before it is applied, from now on. Gets the weight before the change, on the layer's solve
  /// device. Empty: no filter.
  using DeltaFilter = std::function<WeightDelta(WeightId id, const Tensor& weight, const WeightDelta& delta)>;
  void filter_with(DeltaFilter filter) { filter_ = std::move(filter); }
  bool has_filter() const { return static_cast<bool>(filter_); }

  /// Returns the stored weight from before the first change.
  Tensor unedited(WeightId id) const;

  /// Returns a changed weight; null if it is not changed.
  const Entry* find(WeightId id) const;

  /// Returns the changed weights, in the order of their first change.
  const std::vector<Entry>& entries() const { return entries_; }

  void commit() { entries_.clear(); }
  void rollback();

 private:
  CausalLM& model_;
  StoredWeight stored_;
  DeltaFilter filter_;
  ReadBack read_back_;
  std::vector<Entry> entries_;
};

}  // namespace lancet
