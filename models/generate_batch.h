// Rows that are generated together, one token of each row at a time. Defined in generate.cpp.
#pragma once

#include <span>
#include <vector>

#include "lancet/models/generate.h"
#include "lancet/models/sequence_info.h"

namespace lancet {

class GenerateBatch {
 public:
  /// All arguments must outlive this object. `batch_rows`: indices in `rows`.
  GenerateBatch(const CausalLM& model, std::span<const GenerateRow> rows, std::vector<int64_t> batch_rows,
                const GenerateOptions& options);

  /// Runs the model once with its current weights, and appends the chosen tokens to the rows in `out`. Returns false if
  /// every row has ended.
  bool next(std::vector<std::vector<TokenId>>& out);

 private:
  void run_prompts();
  int64_t most_positions() const;
  bool accept(int64_t row, TokenId id, std::vector<TokenId>& out) const;
  void keep(const std::vector<int64_t>& places);
  void step();

  const CausalLM& model_;
  std::span<const GenerateRow> rows_;
  const GenerateOptions& options_;
  std::vector<int64_t> left_;  ///< rows in the batch, by place
  Sampler sampler_;
  KeyValues cache_;
  Tensor positions_B_;           ///< positions of the next tokens, host
  Tensor last_BD_;               ///< hidden states from which they are chosen
  std::vector<TokenId> chosen_;  ///< the last token of each place; empty before the prompts have run
  std::vector<bool> done_;       ///< whether the row of a place has ended
  int64_t n_done_ = 0;
};

}  // namespace lancet
