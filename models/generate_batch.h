// Rows that are generated together, a token of each at a time. Defined in generate.cpp.
#pragma once

#include <span>
#include <vector>

#include "lancet/models/generate.h"
#include "lancet/models/sequence_info.h"

namespace lancet {

class GenerateBatch {
 public:
  /// All outlive this. `batch_rows`: places among `rows`.
  GenerateBatch(const CausalLM& model, std::span<const GenerateRow> rows, std::vector<int64_t> batch_rows,
                const GenerateOptions& options);

  /// Runs the model once, with the weights that it has now, and adds what is chosen to the rows' places in `out`.
  /// False: every row has ended.
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
  Tensor positions_B_;           ///< positions of the tokens that come next, host
  Tensor last_BD_;               ///< hidden states that they are drawn from
  std::vector<TokenId> chosen_;  ///< the last token of each place; empty before the prompts ran
  std::vector<bool> done_;       ///< places whose rows have ended
  int64_t n_done_ = 0;
};

}  // namespace lancet
