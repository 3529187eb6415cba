// Changes of weights as data, and the transaction that applies them: weights are as they were unless it commits.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lancet/models/causal_lm.h"

namespace lancet {

/// W += left @ right. Which request each column belongs to, the method says (EditOutcome::columns).
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

/// Returns the delta in the layout in which files and other ranks give it back: products of equal numbers in another
/// layout may differ in the last bit.
WeightDelta contiguous(const WeightDelta& delta);

/// Returns how many directions changes of one weight can have together: columns of their factors; where one is dense,
/// the weight's smaller side.
int64_t directions_of(std::span<const WeightDelta> deltas);

/// Returns the delta with the same numbers on `device`.
WeightDelta moved_to(const WeightDelta& delta, at::Device device);

/// What rounding to the stored type did to one edited weight.
struct RoundingLoss {
  WeightId id;
  double delta_norm = 0;     ///< Frobenius norm of the whole change
  double weight_norm = 0;    ///< norm of the unedited weight
  double relative_loss = 0;  ///< ||rounded - exact|| / ||change||

  /// The change's norm by the weight's; 0 for a weight of zeros.
  double growth() const { return weight_norm > 0 ? delta_norm / weight_norm : 0; }
};

class WeightTransaction {
 public:
  /// A weight as the checkpoint stores it: a model that runs in a narrower type has lost part of it.
  using StoredWeight = std::function<Tensor(WeightId)>;

  /// `stored`: the weights that are changed; empty: the model's own.
  explicit WeightTransaction(CausalLM& model, StoredWeight stored = {}) : model_(model), stored_(std::move(stored)) {}
  ~WeightTransaction();  ///< rolls back unless committed
  WeightTransaction(const WeightTransaction&) = delete;
  WeightTransaction& operator=(const WeightTransaction&) = delete;

  struct Entry {
    WeightId id;
    Tensor original;  ///< the model's own tensor from before, never written to; a copy, where solves are elsewhere
    Tensor base;      ///< the weight as stored, or `original`
    Tensor master;    ///< base + all deltas, in the placement's value dtype, on the layer's solve device
    std::vector<WeightDelta> deltas;
    std::string key = {};  ///< hash of the first `n_in_key` deltas' bytes
    size_t n_in_key = 0;
  };

  /// Adds to the master and puts the master, in the weight dtype, in the model. Returns the change as it was applied,
  /// until the next one is.
  /// Throws: PlacementError for a delta that is not on the layer's solve device; std::logic_error for one of another
  /// shape; NumericError when it has NaN or Inf, is too large to have a norm, or makes the weight leave the range of
  /// its dtype.
  const WeightDelta& apply(WeightId id, WeightDelta delta);

  /// What a reader of the output gets of a weight: [d_out, d_in] in the master's type, on its device.
  using ReadBack = std::function<Tensor(const Entry&)>;
  /// Empty, as at first: the master rounded to the type that the weight is stored in.
  void write_as(ReadBack read_back) { read_back_ = std::move(read_back); }

  /// Puts every weight, as a reader of the output gets it, in the model, so that what is measured is what is exported.
  /// The masters stay exact. Throws: NumericError when a weight leaves the range of the type it is stored in.
  std::vector<RoundingLoss> round_as_written();
  /// Puts the weights from before the first change in the model; the masters stay.
  void put_unedited();
  /// Puts the masters themselves back in the model: what the next change is made on.
  void put_exact();

  /// Returns a hash of all changes' bytes: with the unedited model's hash it names the weights as they are.
  std::string changes_key();

  /// Changes every delta on its way from here on; gets the weight as it is before, on the layer's solve device. Empty:
  /// none.
  using DeltaFilter = std::function<WeightDelta(WeightId id, const Tensor& weight, const WeightDelta& delta)>;
  void filter_with(DeltaFilter filter) { filter_ = std::move(filter); }
  bool has_filter() const { return static_cast<bool>(filter_); }

  /// Returns the weight as it was before the first change, as it is stored.
  Tensor unedited(WeightId id) const;

  /// Returns a changed weight; null: it is not changed.
  const Entry* find(WeightId id) const;

  /// Changed weights, in the order of their first change.
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
