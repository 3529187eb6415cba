// Keys and values of positions that have been run: what a later part of a sequence attends to, and what recurrent
// mixers go on from. The memory is there for all positions from the start where their number is known, so that a
// sequence grows in place.
#pragma once

#include <cstdint>
#include <vector>

#include "lancet/kernels/attention.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

/// What is kept of layers with a recurrent mixer.
enum class MixerMemory : uint8_t {
  kTokens,  ///< what the mixer reads of each token: later passes may go on behind any of them
  kEnds     ///< its state behind each row's last token, from which alone later passes go on
};

/// A mixer's state, R rows.
struct MixerState {
  Tensor state_RHKV;  ///< undefined: zeros
  Tensor tail_RXC;    ///< what its convolution reads of the last tokens
};

/// Keys (rotated) and values per layer, on that layer's device. Constants: no gradient reaches them.
class KeyValues {
 public:
  KeyValues() = default;
  /// `room`: positions to have memory for. Up to so many are recorded in place; what goes beyond copies all that is
  /// there, at every pass. 0: as many as the first pass brings.
  explicit KeyValues(int64_t room, MixerMemory keeps = MixerMemory::kTokens) : room_(room), keeps_(keeps) {}

  MixerMemory keeps() const { return keeps_; }

  bool empty() const { return !valid_BR_.defined(); }
  /// P: positions of the passes that have ended.
  int64_t positions() const { return positions_; }
  /// bool [B, P], host: false where a row is padding.
  Tensor valid_BP() const;
  /// [B, K, P, C], parts of the memory; undefined tensors for a layer that was not run, or has no attention. Within a
  /// pass P counts what the layer has already recorded of it.
  KeyValuePair layer(int64_t layer) const;

  /// One layer's keys and values [B, T, K, C] of the pass that is under way.
  void record(int64_t layer, const KeyValuePair& fresh_BTKC) { append(place_of(layer).attended, fresh_BTKC); }
  /// What a layer's recurrent mixer reads of each token likewise: channels and scalars, of one head.
  void record_tokens(int64_t layer, const KeyValuePair& fresh_BT1X) { append(place_of(layer).mixed, fresh_BT1X); }
  KeyValuePair mixer_tokens(int64_t layer) const;
  /// State of a layer whose states are kept, behind the last pass.
  const MixerState& mixer_state(int64_t layer) const { return layers_.at(static_cast<size_t>(layer)).state; }
  void record_state(int64_t layer, MixerState state);
  /// The pass has ended; valid: bool [B, T], host.
  void end_pass(const Tensor& valid_BT);

  /// Rows places[0], places[1], ... in that order, as a copy.
  KeyValues select(const std::vector<int64_t>& places) const;
  /// Row i becomes row places[i], in place: only rows that change their place are copied. places[i] is i, or a row
  /// after all places; there are no more places than rows.
  void keep(const std::vector<int64_t>& places);

 private:
  struct Kept {
    KeyValuePair room_BKRC;
    int64_t positions = 0;
  };
  struct Layer {
    Kept attended;
    Kept mixed;
    MixerState state;
  };
  static KeyValuePair pair_of(const Kept& kept);
  void append(Kept& kept, const KeyValuePair& fresh_BTKC) const;
  /// The layer's memory, which is made where there is none.
  Layer& place_of(int64_t layer);

  int64_t room_ = 0;
  MixerMemory keeps_ = MixerMemory::kTokens;
  int64_t positions_ = 0;
  std::vector<Layer> layers_;
  Tensor valid_BR_;
};

}  // namespace lancet
