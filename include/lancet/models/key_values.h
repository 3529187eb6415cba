// Keys and values of positions that have been run: what a later part of a sequence attends to. The memory is there for
// all positions from the start where their number is known, so that a sequence grows in place.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/kernels/attention.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// Keys (rotated) and values per layer, on that layer's device. Constants: no gradient reaches them.
class KeyValues {
 public:
  KeyValues() = default;
  /// `room`: positions to have memory for. Up to so many are recorded in place; what goes beyond copies all that is
  /// there, at every pass. 0: as many as the first pass brings.
  explicit KeyValues(int64_t room) : room_(room) {}

  bool empty() const { return !valid_BR_.defined(); }
  /// P: positions of the passes that have ended.
  int64_t positions() const { return positions_; }
  /// bool [B, P], host: false where a row is padding.
  Tensor valid_BP() const;
  /// [B, K, P, C], parts of the memory; undefined tensors for a layer that was not run. Within a pass P counts what the
  /// layer has already recorded of it.
  KeyValuePair layer(int64_t layer) const;

  /// One layer's keys and values [B, T, K, C] of the pass that is under way.
  void record(int64_t layer, const KeyValuePair& fresh_BTKC);
  /// The pass has ended; valid: bool [B, T], host.
  void end_pass(const Tensor& valid_BT);

  /// Rows places[0], places[1], ... in that order, as a copy.
  KeyValues select(const std::vector<int64_t>& places) const;
  /// Row i becomes row places[i], in place: only rows that change their place are copied. places[i] is i, or a row
  /// after all places; there are no more places than rows.
  void keep(const std::vector<int64_t>& places);

 private:
  struct Layer {
    KeyValuePair room_BKRC;
    int64_t positions = 0;
  };
  int64_t room_ = 0;
  int64_t positions_ = 0;
  std::vector<Layer> layers_;
  Tensor valid_BR_;
};

}  // namespace lancet
