// Everything that attention needs to run a part of a sequence: lengths, positions, packed documents, keys/values of
// what was run before. All of it lies on the host; run_layers brings what a stage needs to the stage's device once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/kernels/ragged_attention.h"
#include "lancet/models/key_values.h"
#include "lancet/runtime/stage_turns.h"
#include "lancet/runtime/tensor.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

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
