// Rows of tokens up to their lookup tokens. What does not depend on the value that is added there is computed once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/training/values.h"

namespace lancet {

struct TokenRows {
  std::vector<std::vector<TokenId>> ids;  ///< the whole rows
  std::vector<int64_t> lookups;           ///< their lookup tokens
  /// Deltas held in place before the lookup tokens. Rows of the same request share them.
  std::vector<std::span<const HeldValue>> held;
};

/// The states of rows at the input of one layer and in the layers above.
struct RowStates {
  Tensor own_ND;   ///< hidden states at the layer's input, of each row's tokens from its lookup token on, row after row
  KeyValues pool;  ///< keys and values, from the layer on, of the earlier tokens, each once; it has a single row
  std::vector<std::vector<int64_t>> earlier;  ///< for each row, the places of its earlier tokens in the pool
};

/// Runs every layer on the tokens before the lookup tokens, and the layers below `first`'s on all tokens. Held deltas
/// are added at `first`, which is a layer's kBlockIn or kMlpOut. Common beginnings of rows are run once. Without
/// gradients.
RowStates run_to_lookups(const CausalLM& model, const TokenRows& rows, HookSite first);

// The part of rows that a step of value optimisation runs: from the lookup tokens on, without padding, with keys and
// values of the tokens before.

/// Returns the number of vectors that a site takes. Each is as wide as the hidden state.
int64_t vectors_of(ValueSite site);

class SuffixRows {
 public:
  /// Runs every layer on the tokens before the lookup tokens.
  SuffixRows(const CausalLM& model, const TokenRows& rows, ValueSite site, int64_t layer);

  /// Returns [R, D] at the lookup tokens: the output of the edited layer, or its input if the site is inside the layer.
  Tensor lookup_hidden() const;

  /// Returns some of the rows, in the given order. read_at() must be called again for them.
  SuffixRows select(const std::vector<int64_t>& rows) const;

  /// From now on, run() gives the outputs at these places of each row, counted from its lookup token; ascending,
  /// without repeats.
  void read_at(const CausalLM& model, const std::vector<std::vector<int64_t>>& places);

  /// Returns the output of the last layer [O, D], one row's places after another's, with `added_RX` (the site's vectors
  /// side by side) added at the lookup tokens.
  Tensor run(const CausalLM& model, const Tensor& added_RX) const;

 private:
  /// The rows whose lookup tokens are among some tokens, and their places.
  struct LookupPlaces {
    Tensor row_X;
    Tensor place_X;
  };

  SuffixRows() = default;
  SequenceInfo sequence() const;
  std::vector<int64_t> first_tokens() const;
  /// Returns `value_1ND` (of all own tokens, or only of the outputs) with `added_RD` added at the lookup tokens among
  /// them.
  Tensor moved(const Tensor& value_1ND, const Tensor& added_RD, const LookupPlaces& lookups) const;

  ValueSite site_ = ValueSite::kBlockOut;
  int64_t edited_layer_ = 0;
  int64_t first_layer_ = 0;  ///< the first layer that a step runs
  Tensor hidden_1ND_;        ///< input of that layer
  RaggedLayout layout_;
  Tensor positions_1N_;
  std::shared_ptr<const KeyValues> pool_;
  Tensor outputs_1O_;
  LookupPlaces among_tokens_, among_outputs_;
  std::shared_ptr<const PassInputs> pass_;  ///< inputs of every step
};

}  // namespace lancet
