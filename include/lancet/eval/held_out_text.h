// Measures how editing changed a model's text prediction, on text that is unrelated to the edits.
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

/// The unedited model's last hidden states on the text. Its distribution at any place can be computed from them.
struct HeldOutStates {
  /// This rank's batches in order: places that predict a token, on the host, in the run's dtype.
  std::vector<Tensor> batches_MD;
};

class HeldOutText {
 public:
  /// Throws: ConfigError if the file cannot be read, if it has no document of at least two tokens, or if a document,
  /// cut as the options say, is longer than the model's positions.
  HeldOutText(const Tokenizer& tokenizer, const HeldOutOptions& options, int64_t max_positions);

  std::vector<MetricRow> metrics() const;
  int64_t predicted_tokens() const { return predicted_; }
  int64_t longest_document() const;

  /// Collective; all ranks get the same result. Returns one row of outcomes per document, token by token: text_nll in
  /// nats, text_kl = KL(before || now) in nats over the whole vocabulary, text_top1_agreement. `before`: the `states`
  /// of a call on the unedited model, which must have the same final norm and head; null: only text_nll is measured.
  /// `states`: receives this rank's states; null: they are not kept.
  std::vector<Tallies> measure(const CausalLM& model, const std::string& stage, Communicator& communicator,
                               const HeldOutStates* before, HeldOutStates* states) const;

  /// Adds text_perplexity = exp(mean of text_nll).
  static void conclude(Tallies& totals);

 private:
  std::vector<std::vector<TokenId>> documents_;
  RowBatches batches_;
  int64_t predicted_ = 0;  ///< number of tokens except the first of each document
};

}  // namespace lancet
