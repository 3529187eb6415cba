// The one capture of hidden states at lookup tokens, for every method.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/models/batching.h"
#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"
#include "lancet/text/prompt.h"

namespace lancet {

/// Tokens of whose hidden states a rank keeps one layer's input: 1 GiB of an 8B model's in bf16.
inline constexpr int64_t kKeptTokens = int64_t{1} << 17;

/// Prompts up to their lookup tokens, whose hidden states are asked for at one site after another. Tokens after the
/// lookup token are not run (they cannot matter), nor is anything after the site.
class LookupStates {
 public:
  /// `model` and `rows` outlive this. The model's weights may change between calls.
  LookupStates(const CausalLM& model, std::vector<const LocatedPrompt*> rows, int64_t kept_tokens = kKeptTokens);

  /// Keeps the rows' hidden states at `layer`'s input, for as many rows as `kept_tokens` allows on this rank: from now
  /// on weights below it stay as they are, and sites are at it or above. Takes effect with the next collect().
  void keep_from(int64_t layer) { kept_layer_ = layer; }

  bool empty() const { return rows_.empty(); }

  /// Collective: batches are spread over ranks. The site's value at each row's lookup token: [rows, dim], model dtype,
  /// on the site's layer's device, in the order of the rows.
  Tensor collect(HookSite site, Communicator& communicator);

 private:
  /// A batch's hidden states at the input of `layer`.
  struct Kept {
    int64_t layer = 0;
    Tensor h_BTD;
  };

  Tensor collect_batch(size_t batch, HookSite site, StageTurn& turn);
  /// Returns, batch by batch, whether it is among those of this rank that are kept.
  std::vector<char> choose_kept(const Communicator& communicator) const;

  const CausalLM& model_;
  std::vector<const LocatedPrompt*> rows_;
  int64_t kept_tokens_;
  int64_t kept_layer_ = 0;
  RowBatches batches_;
  std::vector<char> is_kept_;  ///< one for each batch
  std::vector<Kept> kept_;     ///< one for each batch
};

/// A value for each row's lookup token in the place of what is at `at`, and the layers above it at which the same point
/// is asked for.
struct Replay {
  HookSite at;
  Tensor value_ND;
  std::span<const int64_t> layers;
};

/// Collective, batches being spread over ranks. The point's values at the lookup tokens while the replay's are in their
/// place: [rows, layers, dim], model dtype, on the last layer's device.
Tensor replay_from(const CausalLM& model, const std::vector<const LocatedPrompt*>& rows, const Replay& replay,
                   Communicator& communicator);

/// Collective. LookupStates::collect of one site.
Tensor collect_at(const CausalLM& model, std::vector<const LocatedPrompt*> rows, HookSite site,
                  Communicator& communicator);

}  // namespace lancet
