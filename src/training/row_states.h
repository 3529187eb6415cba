// Rows of tokens up to their lookup tokens: what does not depend on a value that is added there, computed once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/training/values.h"

namespace lancet {

struct TokenRows {
  std::vector<std::vector<TokenId>> ids;         ///< whole rows
  std::vector<int64_t> lookups;                  ///< their lookup tokens
  std::vector<std::span<const HeldValue>> held;  ///< deltas in place before them; rows of a request share theirs
};

/// States of rows at the input of one layer and in those above.
struct RowStates {
  Tensor own_ND;   ///< hidden states into the layer of each row's tokens from its lookup token on, row after row
  KeyValues pool;  ///< keys and values, from the layer on, of the tokens before: each once, in its only row
  std::vector<std::vector<int64_t>> earlier;  ///< each row's tokens before the lookup token, as places in the pool
};

/// Runs every layer on the tokens before the lookup tokens, and those below `first`'s on all tokens; held deltas are
/// added at `first`, a layer's kBlockIn or kMlpOut. What rows begin with alike is run once. Without gradients.
RowStates run_to_lookups(const CausalLM& model, const TokenRows& rows, HookSite first);

// The part of rows that a step of value optimisation runs: from the lookup tokens on, without padding, over keys and
// values of what lies before.

/// Vectors that a site takes, each as wide as the hidden state.
int64_t vectors_of(ValueSite site);

class SuffixRows {
 public:
  /// Runs every layer on what lies before the lookup tokens.
  SuffixRows(const CausalLM& model, const TokenRows& rows, ValueSite site, int64_t layer);

  /// [R, D] at the lookup tokens: output of the edited layer; where the site is inside it, its input.
  Tensor lookup_hidden() const;

  /// Some of the rows, in the order given. What they are read at is to be said anew.
  SuffixRows select(const std::vector<int64_t>& rows) const;

  /// Makes run() give the outputs at these places of each row from here on, counted from its lookup token: ascending,
  /// without repeats.
  void read_at(const CausalLM& model, const std::vector<std::vector<int64_t>>& places);

  /// Output of the last layer [O, D], one row's places after another's, with `added_RX` (the site's vectors side by
  /// side) added at the lookup tokens.
  Tensor run(const CausalLM& model, const Tensor& added_RX) const;

 private:
  /// Rows whose lookup tokens are among some tokens, and where.
  struct LookupPlaces {
    Tensor row_X;
    Tensor place_X;
  };

  SuffixRows() = default;
  SequenceInfo sequence() const;
  std::vector<int64_t> first_tokens() const;
  /// `value_1ND` of all own tokens or of the outputs alone, with `added_RD` added at the lookup tokens among them.
  Tensor moved(const Tensor& value_1ND, const Tensor& added_RD, const LookupPlaces& lookups) const;

  ValueSite site_ = ValueSite::kBlockOut;
  int64_t edited_layer_ = 0;
  int64_t first_layer_ = 0;  ///< that a step runs
  Tensor hidden_1ND_;        ///< its input
  RaggedLayout layout_;
  Tensor positions_1N_;
  std::shared_ptr<const KeyValues> pool_;
  Tensor outputs_1O_;
  LookupPlaces among_tokens_, among_outputs_;
  std::shared_ptr<const PassInputs> pass_;  ///< inputs of every step
};

}  // namespace lancet
