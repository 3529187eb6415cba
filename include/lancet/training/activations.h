// Captures hidden states at lookup tokens, for every method.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/models/batching.h"
#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"
#include "lancet/text/prompt.h"

namespace lancet {

/// The number of tokens for which a rank keeps one layer's input: 1 GiB for an 8B model in bf16.
inline constexpr int64_t kKeptTokens = int64_t{1} << 17;

/// Prompts up to their lookup tokens, whose hidden states are collected at one site after another. Neither the tokens
/// after the lookup token, which have no influence, nor the layers after the site are run.
class LookupStates {
 public:
  /// `model` and `rows` must outlive this. The model's weights may change between calls.
  LookupStates(const CausalLM& model, std::vector<const LocatedPrompt*> rows, int64_t kept_tokens = kKeptTokens);

  /// Keeps the rows' hidden states at `layer`'s input, for as many rows as `kept_tokens` allows on this rank. From then
  /// on the weights below `layer` must not change, and sites must be at `layer` or above. It takes effect with the next
  /// collect().
  void keep_from(int64_t layer) { kept_layer_ = layer; }

  bool empty() const { return rows_.empty(); }

  /// Collective. Returns the site's value at each row's lookup token: [rows, dim], in the model's dtype, on the device
  /// of the site's layer, in the order of the rows. Batches are spread over the ranks.
  Tensor collect(HookSite site, Communicator& communicator);

 private:
  /// A batch's hidden states at the input of `layer`.
  struct Kept {
    int64_t layer = 0;
    Tensor h_BTD;
  };

  Tensor collect_batch(size_t batch, HookSite site, StageTurn& turn);
  /// Returns for each batch whether this rank keeps its states.
  std::vector<char> choose_kept(const Communicator& communicator) const;

  const CausalLM& model_;
  std::vector<const LocatedPrompt*> rows_;
  int64_t kept_tokens_;
  int64_t kept_layer_ = 0;
  RowBatches batches_;
  std::vector<char> is_kept_;  ///< one for each batch
  std::vector<Kept> kept_;     ///< one for each batch
};

/// A replacement value for each row's lookup token at site `at`, and the layers above it at which the same hook point
/// is read.
struct Replay {
  HookSite at;
  Tensor value_ND;
  std::span<const int64_t> layers;
};

/// Collective. Returns the hook point's values at the lookup tokens while the replay's values are in place: [rows,
/// layers, dim], in the model's dtype, on the last layer's device. Batches are spread over the ranks.
Tensor replay_from(const CausalLM& model, const std::vector<const LocatedPrompt*>& rows, const Replay& replay,
                   Communicator& communicator);

/// Collective. Calls LookupStates::collect() for one site.
Tensor collect_at(const CausalLM& model, std::vector<const LocatedPrompt*> rows, HookSite site,
                  Communicator& communicator);

}  // namespace lancet
