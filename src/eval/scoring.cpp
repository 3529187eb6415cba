#include "lancet/eval/scoring.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/core/progress.h"
#include "lancet/models/batching.h"
#include "lancet/models/spread_rows.h"
#include "lancet/models/target_places.h"
#include "lancet/runtime/stage_turns.h"

namespace lancet {
namespace {

/// Logits of one pass are bounded too: [positions, V].
constexpr int64_t kRowsPerHeadCall = 1024;

/// Of each row nll and the likeliest tokens: [rows, 1 + most labels] f64 on the host.
Tensor score_batch(const CausalLM& model, std::span<const Continuation> continuations, std::span<const int64_t> rows,
                   int64_t most_labels, StageTurn& turn) {
  std::vector<std::vector<TokenId>> ids;
  std::vector<RowTarget> targets;
  for (const int64_t row : rows) {
    const Continuation& continuation = continuations[static_cast<size_t>(row)];
    ids.push_back(continuation.prompt);
    ids.back().insert(ids.back().end(), continuation.target.begin(), continuation.target.end() - 1);
    targets.push_back({static_cast<int64_t>(continuation.prompt.size()) - 1, continuation.target});
  }
  TokenBatch batch = make_batch(ids);
  const TargetPlaces places = target_places(targets);
  batch.sequence.turn = &turn;
  batch.sequence.outputs_BO = places.outputs_BO;
  const Tensor h_BOD = model.run_layers(model.embed(batch.ids_BT), batch.sequence, model.all_layers());
  const Tensor position = to_index(places.positions, h_BOD.device());
  const Tensor label = to_index(places.ids, h_BOD.device());
  const Tensor read_MD = h_BOD.flatten(0, 1).index_select(0, position);
  std::vector<Tensor> nll_parts, hit_parts;
  for (int64_t begin = 0; begin < read_MD.size(0); begin += kRowsPerHeadCall) {
    const int64_t end = std::min(begin + kRowsPerHeadCall, read_MD.size(0));
    const Tensor logits = model.logits(read_MD.slice(0, begin, end)).to(model.placement().value_dtype());
    const Tensor part = label.slice(0, begin, end);
    nll_parts.push_back(-torch::log_softmax(logits, 1).gather(1, part.unsqueeze(1)).squeeze(1));
    hit_parts.push_back(logits.argmax(1));
  }
  const Tensor nll = torch::cat(nll_parts).to(Placement::host(), torch::kDouble).contiguous();
  const Tensor hit = torch::cat(hit_parts).to(Placement::host()).contiguous();
  Tensor scores_NX = torch::zeros({static_cast<int64_t>(rows.size()), 1 + most_labels}, torch::kDouble);
  double* out = scores_NX.mutable_data_ptr<double>();
  int64_t at = 0;
  for (const int64_t row : rows) {
    const size_t n_labels = continuations[static_cast<size_t>(row)].target.size();
    for (size_t j = 0; j < n_labels; ++j, ++at) {
      out[0] += nll.const_data_ptr<double>()[at] / static_cast<double>(n_labels);
      out[1 + j] = static_cast<double>(hit.const_data_ptr<int64_t>()[at]);
    }
    out += 1 + most_labels;
  }
  return scores_NX;
}

}  // namespace

std::vector<ContinuationScore> score_continuations(const CausalLM& model, std::span<const Continuation> continuations,
                                                   const std::string& stage, Communicator& communicator) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> lengths;
  int64_t most_labels = 0;
  for (const Continuation& continuation : continuations) {
    most_labels = std::max(most_labels, static_cast<int64_t>(continuation.target.size()));
    lengths.push_back(static_cast<int64_t>(continuation.prompt.size() + continuation.target.size()) - 1);
  }
  const RowBatches batches = plan_batches(lengths, {.tokens = kForwardTokens});
  Progress progress(stage, count_own_rows(communicator, batches), "continuations");
  const Tensor scores_NX = spread_rows(communicator, RowWork{model.placement(), stage}, batches,
                                       {torch::kDouble, Placement::host()}, [&](size_t batch, StageTurn& turn) {
                                         const std::vector<int64_t>& rows = batches[batch];
                                         const Tensor scores_RX =
                                             score_batch(model, continuations, rows, most_labels, turn);
                                         progress.advance(static_cast<int64_t>(rows.size()));
                                         return scores_RX;
                                       });
  std::vector<ContinuationScore> scores;
  const double* at = scores_NX.const_data_ptr<double>();
  for (const Continuation& continuation : continuations) {
    scores.push_back({at[0], {at + 1, at + 1 + continuation.target.size()}});
    at += 1 + most_labels;
  }
  return scores;
}

}  // namespace lancet
