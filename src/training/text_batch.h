// Teacher-forced losses of some texts as a function of what hooks change. The layers below the first changed one are
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

/// Throws: std::logic_error if the weight is not a gate, up or down projection.
ProjectionSites projection_sites(WeightId id);

/// Returns the number of positions that `tokens` means in a request's text.
int64_t count_places(const TokenizedRequest& request, TokenChoice tokens);

/// Returns the lowest layer of the weights.
int64_t first_layer(std::span<const WeightId> weights);

class TextBatch;

/// A row of a batch.
struct TextRow {
  const TextBatch* batch;
  int64_t row;
};

/// [N] in the value dtype, on the head's device.
struct TextLosses {
  Tensor loss_N;  ///< mean NLL of each request's target tokens
  Tensor lead_N;  ///< smallest lead of a target token over the likeliest other token, in log p, without gradient;
                  ///< undefined unless asked for
};

class TextBatch {
 public:
  /// `first_layer`: the lowest layer that hooks change.
  TextBatch(const CausalLM& model, std::span<const TokenizedRequest> requests, int64_t first_layer,
            TrainingObjective objective);
  /// Makes a batch from rows of other batches, and takes their states below the first layer.
  TextBatch(const CausalLM& model, std::span<const TokenizedRequest> requests, std::span<const TextRow> rows);

  /// `with_leads`: only for the objective kTarget.
  TextLosses losses(const HookSet& hooks, bool with_leads = false) const;
  /// Returns the number of target tokens of each request.
  const std::vector<int64_t>& target_sizes() const { return target_sizes_; }
  /// Returns the positions that `tokens` means in a batch with the objective kTarget, in the order of the requests, as
  /// flat indices row * T + t. There are count_places() for each request.
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
  Tensor position_U_;  ///< flat positions whose logits are read, each once; on the head's device
  Tensor cell_L_,
      slot_L_;  ///< for each label, its flat index in [U, V], and in [S, N] with a column for each request; on the
                ///< head's device
};

}  // namespace lancet
