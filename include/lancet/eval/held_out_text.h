// What editing did to a model's text prediction, on text that has nothing to do with the edits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lancet/eval/metrics.h"
#include "lancet/models/batching.h"
#include "lancet/models/causal_lm.h"
#include "lancet/runtime/communicator.h"
#include "lancet/spec/evaluation_options.h"

namespace lancet {

/// The unedited model's last hidden states on the text, from which its distribution at any place comes back.
struct HeldOutStates {
  std::vector<Tensor> batches_MD;  ///< this rank's batches, in their order: the places that predict, host, run's dtype
};

class HeldOutText {
 public:
  /// Throws: ConfigError when the file cannot be read, has no document of two tokens, or, cut as the options say, one
  /// longer than the model's positions.
  HeldOutText(const Tokenizer& tokenizer, const HeldOutOptions& options, int64_t max_positions);

  std::vector<MetricRow> metrics() const;
  int64_t predicted_tokens() const { return predicted_; }
  int64_t longest_document() const;

  /// Collective: all ranks get the same. One row of outcomes for each document, token by token: text_nll in nats,
  /// text_kl = KL(before || now) in nats over the whole vocabulary, text_top1_agreement. `before`: the states that this
  /// function left there on the unedited model, whose final norm and head are the same as now; null: there are none,
  /// and only text_nll is measured. `states`: where this rank's states go; null: they are not kept.
  std::vector<Tallies> measure(const CausalLM& model, const std::string& stage, Communicator& communicator,
                               const HeldOutStates* before, HeldOutStates* states) const;

  /// Adds text_perplexity = exp(mean of text_nll).
  static void conclude(Tallies& totals);

 private:
  std::vector<std::vector<TokenId>> documents_;
  RowBatches batches_;
  int64_t predicted_ = 0;  ///< tokens but the first of each document
};

}  // namespace lancet
