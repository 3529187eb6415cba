// Everything that attention needs to run a part of a sequence: lengths, positions, packed documents, and the keys and
// values of earlier parts. It is all on the host; run_layers copies what a stage needs to the stage's device once.
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

// The keys and values of positions that have already been run. Later parts of a sequence attend to them, and recurrent
// mixers continue from them. If the number of positions is known, memory for all of them is allocated at the start, so
// that a sequence grows in place.

/// What is kept for layers with a recurrent mixer.
enum class MixerMemory : uint8_t {
  kTokens,  ///< what the mixer reads of each token; later passes may continue after any token
  kEnds     ///< the mixer's state after each row's last token; later passes can only continue from there
};

/// A mixer's state for R rows.
struct MixerState {
  Tensor state_RHKV;  ///< undefined: zeros
  Tensor tail_RXC;    ///< the convolution's inputs for the last tokens
};

/// Keys (rotated) and values per layer, on that layer's device. They are constants: no gradient flows into them.
class KeyValues {
 public:
  KeyValues() = default;
  /// `room`: number of positions to allocate memory for; 0: as many as the first pass has. Positions beyond it make
  /// every pass copy all that is stored.
  explicit KeyValues(int64_t room, MixerMemory keeps = MixerMemory::kTokens) : room_(room), keeps_(keeps) {}

  MixerMemory keeps() const { return keeps_; }

  bool empty() const { return !valid_BR_.defined(); }
  /// P: the number of positions of all passes that have ended.
  int64_t positions() const { return positions_; }
  /// Returns bool [B, P], host: false where a row is padding.
  Tensor valid_BP() const;
  /// Returns a layer's keys and values [B, K, P, C] as views of the memory; undefined tensors for a layer that has not
  /// run or has no attention. During a pass, P includes what the layer has already recorded in this pass.
  KeyValuePair layer(int64_t layer) const;

  /// Records one layer's keys and values [B, T, K, C] of the current pass.
  void record(int64_t layer, const KeyValuePair& fresh_BTKC) { append(place_of(layer).attended, fresh_BTKC); }
  /// Records what a layer's recurrent mixer reads of each token of the current pass: channels and scalars, as one head.
  void record_tokens(int64_t layer, const KeyValuePair& fresh_BT1X) { append(place_of(layer).mixed, fresh_BT1X); }
  KeyValuePair mixer_tokens(int64_t layer) const;
  /// Returns the state of a layer after the last pass, for kEnds.
  const MixerState& mixer_state(int64_t layer) const { return layers_.at(static_cast<size_t>(layer)).state; }
  void record_state(int64_t layer, MixerState state);
  /// Ends the pass. valid: bool [B, T], host.
  void end_pass(const Tensor& valid_BT);

  /// Returns a copy with the rows places[0], places[1], ... in that order.
  KeyValues select(const std::vector<int64_t>& places) const;
  /// Makes row places[i] the new row i, in place; only rows that change their place are copied. places[i] is i, or a
  /// row after all places; there are no more places than rows.
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
  /// Returns the layer's memory, and creates it at the first call.
  Layer& place_of(int64_t layer);

  int64_t room_ = 0;
  MixerMemory keeps_ = MixerMemory::kTokens;
  int64_t positions_ = 0;
  std::vector<Layer> layers_;
  Tensor valid_BR_;
};

/// Consecutive documents of equal length in a packed row.
struct DocumentRun {
  int64_t documents = 0;
  int64_t tokens = 0;  ///< tokens of each
};

struct PassInputs;

struct SequenceInfo {
  std::vector<int64_t> lengths;     ///< number of tokens of each row without padding (padding is on the right)
  Tensor positions_BT;              ///< int64, host: rotary position of each token
  std::vector<DocumentRun> packed;  ///< the batch's only row consists of documents that do not see each other; empty: a
                                    ///< row is one document. Cannot be combined with `prefix`
  Tensor places_P;    ///< int64, host, for packed documents: the row's token at each place of each document in turn. A
                      ///< token that documents share is in the row once. Undefined: no token is shared
  Tensor first_T;     ///< int64, host: the first place of each token of the row; undefined if places_P is
  Tensor outputs_BO;  ///< int64, host: the tokens of each row whose output of the pass's last layer is needed; the
                      ///< layer computes no other. Repeats are allowed. Undefined: all tokens
  /// The batch's only row consists of ragged rows, one after the other, which attend to places of the only row of
  /// `prefix`; the layout's queries are ignored. outputs_BO must then be ascending, without repeats. Null: a row is one
  /// sequence.
  const RaggedLayout* ragged = nullptr;
  /// Earlier positions that the rows attend to in addition to their own; null: none.
  const KeyValues* prefix = nullptr;
  KeyValues* record = nullptr;  ///< receives the keys and values of these tokens (may be the object of `prefix`); null:
                                ///< they are not recorded
  const PassInputs* prepared = nullptr;  ///< inputs from CausalLM::prepare_pass() for exactly this sequence and these
                                         ///< layers; null: the pass makes them
  StageTurn* turn = nullptr;             ///< turn to wait for before each stage; null: no waiting
};

struct TokenBatch {
  Tensor ids_BT;  ///< int64, host; padding is id 0
  SequenceInfo sequence;
};

/// Makes a batch of rows that are padded on the right to the longest row; positions start at 0. Every row must have at
/// least one token.
TokenBatch make_batch(std::span<const std::vector<TokenId>> rows);

/// Packs whole documents into one row without padding; positions start at 0 in each document. Documents with the same
/// beginning share its tokens, because causal attention gives these tokens the same hidden states. Attention runs once
/// per run of documents of equal length, so put those beside each other. There must be at least one document, and none
/// may be empty.
TokenBatch make_packed_batch(std::span<const std::span<const TokenId>> documents);

/// Returns for each token of the row how many places of the packed documents it stands for: int64 [T], host; undefined:
/// one each.
Tensor token_counts(const SequenceInfo& sequence);

/// Returns bool [B, T]: true where a token is not padding.
Tensor valid_tokens(const SequenceInfo& sequence);

/// Returns the number of positions up to the end of the sequence, earlier passes included.
int64_t positions_seen(const SequenceInfo& sequence);

/// Return int64, host: how many positions each row reaches, and how many it had before this part. The shape is [B, 1];
/// for ragged rows it is [1, T], with the value of each token's row. `prefix` tells what was run before.
Tensor positions_reached(const SequenceInfo& sequence);
Tensor positions_before(const SequenceInfo& sequence);

/// Returns the mask, bool [B, 1, T, P + T], host; undefined if plain causal attention has the same effect, and for
/// packed documents. `window`: a token sees the last `window` positions, its own included; 0: all.
Tensor attention_mask(const SequenceInfo& sequence, int64_t window);

}  // namespace lancet
