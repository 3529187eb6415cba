#include "lancet/eval/token_scores.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/models/batching.h"
#include "lancet/models/memory.h"
#include "lancet/models/sequence_info.h"

namespace lancet {

std::vector<TokenScore> score_tokens(const CausalLM& model, std::span<const TokenId> ids, size_t first, int64_t top) {
  const torch::NoGradGuard no_grad;
  std::vector<TokenScore> scores;
  if (first >= ids.size()) return scores;
  const std::vector<std::vector<TokenId>> rows{{ids.begin(), ids.end() - 1}};
  TokenBatch batch = make_batch(rows);
  const auto begin = static_cast<int64_t>(first) - 1, end = static_cast<int64_t>(ids.size()) - 1;
  batch.sequence.outputs_BO = torch::arange(begin, end).unsqueeze(0);
  const Tensor h_OD =
      model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers()).squeeze(0);
  const int64_t together = rows_per_head_call(model.config(), model.placement().weight_dtype());
  for (int64_t row = 0; row < h_OD.size(0); row += together) {
    const int64_t next = std::min(row + together, h_OD.size(0));
    const Tensor table_OV =
        torch::log_softmax(model.logits(h_OD.slice(0, row, next)).to(model.placement().value_dtype()), 1);
    const std::vector<int64_t> wanted(ids.begin() + begin + 1 + row, ids.begin() + begin + 1 + next);
    const std::vector<double> own =
        to_doubles(table_OV.gather(1, to_index(wanted, table_OV.device()).unsqueeze(1)).flatten());
    const auto [best_OK, at_OK] = table_OV.topk(top, 1);
    const std::vector<double> best = to_doubles(best_OK.flatten()), at = to_doubles(at_OK.flatten());
    for (size_t i = 0; i < own.size(); ++i) {
      TokenScore& score = scores.emplace_back(TokenScore{{static_cast<TokenId>(wanted[i]), own[i]}, {}});
      for (size_t k = i * static_cast<size_t>(top); k < (i + 1) * static_cast<size_t>(top); ++k)
        score.likeliest.push_back({static_cast<TokenId>(at[k]), best[k]});
    }
  }
  return scores;
}

}  // namespace lancet
