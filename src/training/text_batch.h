// Teacher-forced losses of some texts as a function of what hooks change: layers below the first one that matters are
// run once.
#pragma once

#include <span>
#include <vector>

#include "lancet/training/text_training.h"

namespace lancet {

/// Sites at which a projection's input and output can be seen.
struct ProjectionSites {
  HookSite input;
  HookSite output;
};

/// Throws: std::logic_error for a weight that is no gate, up or down projection.
ProjectionSites projection_sites(WeightId id);

/// Positions that `tokens` means in a request's text.
int64_t count_places(const TokenizedRequest& request, TokenChoice tokens);

/// The lowest layer of the weights.
int64_t first_layer(std::span<const WeightId> weights);

class TextBatch;

/// A row of a batch.
struct TextRow {
  const TextBatch* batch;
  int64_t row;
};

/// [N] value dtype, on the head's device.
struct TextLosses {
  Tensor loss_N;  ///< mean NLL of each request's target tokens
  Tensor lead_N;  ///< least log p of a target token less that of the likeliest other, no gradient; undefined: not asked
};

class TextBatch {
 public:
  /// `first_layer`: the lowest that hooks change.
  TextBatch(const CausalLM& model, std::span<const TokenizedRequest> requests, int64_t first_layer,
            TrainingObjective objective);
  /// Makes a batch of other batches' rows, whose states below the first layer it takes from there.
  TextBatch(const CausalLM& model, std::span<const TokenizedRequest> requests, std::span<const TextRow> rows);

  /// `with_leads`: for objective kTarget.
  TextLosses losses(const HookSet& hooks, bool with_leads = false) const;
  /// Target tokens of each request.
  const std::vector<int64_t>& target_sizes() const { return target_sizes_; }
  /// What `tokens` means in the rows of a batch with objective kTarget, in the order of the requests, as flat indices
  /// row * T + t: count_places() of each.
  std::vector<int64_t> places(TokenChoice tokens) const;

 private:
  void read_rows(std::span<const TokenizedRequest> requests);
  void place_labels(std::span<const TokenizedRequest> requests);

  const CausalLM& model_;
  int64_t first_layer_;
  TrainingObjective objective_;
  TokenBatch batch_;
  Tensor hidden_BTD_;  ///< input of the first layer
  std::vector<int64_t> prompt_sizes_, target_sizes_;
  Tensor position_U_;  ///< flat places whose logits are read, each once; on the head's device
  Tensor cell_L_,
      slot_L_;  ///< flat places of each label in [U, V], and in [S, N], a column for each request; there too
};

}  // namespace lancet
