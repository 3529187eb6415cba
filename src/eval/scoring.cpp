#include "lancet/eval/scoring.h"

#include <torch/types.h>

#include "lancet/core/progress.h"
#include "lancet/models/batching.h"
#include "lancet/runtime/stage_turns.h"

namespace lancet {
namespace {

/// Logits of one pass are bounded too: [positions, V].
constexpr int64_t kRowsPerHeadCall = 1024;

struct BatchLabels {
  std::vector<int64_t> position;  ///< flat index row * T + t of the token that predicts the label
  std::vector<int64_t> label;
};

/// Scores go to their rows' places.
void score_batch(const CausalLM& model, std::span<const Continuation> continuations, std::span<const int64_t> rows,
                 StageTurn& turn, std::vector<ContinuationScore>& scores) {
  const torch::NoGradGuard no_grad;
  std::vector<std::vector<TokenId>> ids;
  for (const int64_t row : rows) {
    const Continuation& continuation = continuations[static_cast<size_t>(row)];
    ids.push_back(continuation.prompt);
    ids.back().insert(ids.back().end(), continuation.target.begin(), continuation.target.end() - 1);
  }
  TokenBatch batch = make_batch(ids);
  batch.sequence.turn = &turn;
  BatchLabels labels;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Continuation& continuation = continuations[static_cast<size_t>(rows[i])];
    const int64_t begin =
        static_cast<int64_t>(i) * batch.ids_BT.size(1) + static_cast<int64_t>(continuation.prompt.size()) - 1;
    for (size_t j = 0; j < continuation.target.size(); ++j) {
      labels.position.push_back(begin + static_cast<int64_t>(j));
      labels.label.push_back(continuation.target[j]);
    }
  }
  const Tensor h_BTD = model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers());
  const Tensor position = torch::tensor(labels.position, torch::kLong).to(h_BTD.device());
  const Tensor label = torch::tensor(labels.label, torch::kLong).to(h_BTD.device());
  std::vector<Tensor> nll_parts, hit_parts;
  const Tensor read_MD = h_BTD.flatten(0, 1).index_select(0, position);
  for (int64_t begin = 0; begin < read_MD.size(0); begin += kRowsPerHeadCall) {
    const int64_t end = std::min(begin + kRowsPerHeadCall, read_MD.size(0));
    const Tensor logits = model.logits(read_MD.slice(0, begin, end)).to(model.placement().value_dtype());
    const Tensor part = label.slice(0, begin, end);
    nll_parts.push_back(-torch::log_softmax(logits, 1).gather(1, part.unsqueeze(1)).squeeze(1));
    hit_parts.push_back(logits.argmax(1) == part);
  }
  const Tensor nll = torch::cat(nll_parts).to(Placement::host(), torch::kDouble).contiguous();
  const Tensor hit = torch::cat(hit_parts).to(Placement::host()).contiguous();
  int64_t at = 0;
  for (const int64_t row : rows) {
    const size_t n_labels = continuations[static_cast<size_t>(row)].target.size();
    ContinuationScore score{0.0, true};
    for (size_t j = 0; j < n_labels; ++j, ++at) {
      score.nll += nll.const_data_ptr<double>()[at] / static_cast<double>(n_labels);
      score.is_argmax = score.is_argmax && hit.const_data_ptr<bool>()[at];
    }
    scores[static_cast<size_t>(row)] = score;
  }
}

}  // namespace

std::vector<ContinuationScore> score_continuations(const CausalLM& model, std::span<const Continuation> continuations,
                                                   const std::string& stage) {
  std::vector<int64_t> lengths;
  for (const Continuation& continuation : continuations)
    lengths.push_back(static_cast<int64_t>(continuation.prompt.size() + continuation.target.size()) - 1);
  std::vector<ContinuationScore> scores(continuations.size());
  Progress progress(stage, static_cast<int64_t>(continuations.size()), "continuations");
  const std::vector<std::vector<int64_t>> batches = plan_batches(lengths, kForwardTokens);
  run_in_turns(model.placement(), 0, static_cast<int64_t>(batches.size()), [&](int64_t i, StageTurn& turn) {
    const std::vector<int64_t>& rows = batches[static_cast<size_t>(i)];
    score_batch(model, continuations, rows, turn, scores);
    progress.advance(static_cast<int64_t>(rows.size()));
  });
  return scores;
}

}  // namespace lancet
