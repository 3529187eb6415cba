// Everything that attention needs to run a part of a sequence: lengths, positions, packed documents, keys/values of
// what was run before. All of it lies on the host; run_layers brings what a stage needs to the stage's device once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/kernels/attention.h"
#include "lancet/kernels/ragged_attention.h"
#include "lancet/runtime/host_workers.h"
#include "lancet/runtime/tensor.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

// Keys and values of positions that have been run: what a later part of a sequence attends to, and what recurrent
// mixers go on from. The memory is there for all positions from the start where their number is known, so that a
// sequence grows in place.

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

/// Documents of one length that follow one another in a packed row.
struct DocumentRun {
  int64_t documents = 0;
  int64_t tokens = 0;  ///< tokens of each
};

struct PassInputs;

struct SequenceInfo {
  std::vector<int64_t> lengths;     ///< tokens of each row that are not padding (padding is on the right)
  Tensor positions_BT;              ///< int64, host: rotary position of each token
  std::vector<DocumentRun> packed;  ///< the only row is documents that do not see each other; empty: a row is one
                                    ///< document. Not together with `prefix`
  Tensor places_P;    ///< int64, host, for packed documents: the row's token at each place of each document in turn.
                      ///< A token that documents share is in the row once. Undefined: none is shared
  Tensor first_T;     ///< int64, host: the first place of each token of the row; undefined with places_P
  Tensor outputs_BO;  ///< int64, host: the tokens of each row whose output is wanted of the pass's last layer, which
                      ///< then computes no other; repeats are allowed; undefined: all tokens
  const RaggedLayout* ragged = nullptr;  ///< the only row is rows of these lengths one after the other, which attend
                                         ///< to places of the only row of `prefix`; its queries are not looked at.
                                         ///< outputs_BO then is ascending, without repeats. Null: a row is one
  const KeyValues* prefix = nullptr;     ///< what the rows attend to besides themselves
  KeyValues* record =
      nullptr;  ///< keys/values of these tokens are recorded here (may be the object `prefix` points to)
  const PassInputs* prepared = nullptr;  ///< inputs of CausalLM::prepare_pass(), for this very sequence and these
                                         ///< layers; null: made by the pass
  StageTurn* turn = nullptr;             ///< taken at the door of each stage; null: in at once
};

struct TokenBatch {
  Tensor ids_BT;  ///< int64, host; padding is id 0
  SequenceInfo sequence;
};

/// Rows padded on the right to the longest; positions from 0. Every row has at least one token.
TokenBatch make_batch(std::span<const std::vector<TokenId>> rows);

/// Whole documents in one row, without padding, positions from 0 in each. Documents that begin alike share the tokens
/// up to where they differ: causal attention gives those the same hidden states. Attention runs once per run of
/// documents of equal length: put those beside each other. No document is empty, and there is at least one.
TokenBatch make_packed_batch(std::span<const std::span<const TokenId>> documents);

/// int64 [T], host: how many places of the packed documents each token of the row stands for; undefined: one each.
Tensor token_counts(const SequenceInfo& sequence);

/// bool [B, T]: true where a token is not padding.
Tensor valid_tokens(const SequenceInfo& sequence);

/// How many positions the sequence reaches, what was run before included.
int64_t positions_seen(const SequenceInfo& sequence);

/// int64, host: how many positions each row reaches, and had reached before: [B, 1]; of ragged rows each token's row:
/// [1, T]. What was run before is counted by `prefix`.
Tensor positions_reached(const SequenceInfo& sequence);
Tensor positions_before(const SequenceInfo& sequence);

/// bool [B, 1, T, P + T], host; undefined when plain causal attention says the same, and for packed documents.
/// `window`: of how many positions a token sees the last ones, its own included; 0: of all.
Tensor attention_mask(const SequenceInfo& sequence, int64_t window);

}  // namespace lancet
