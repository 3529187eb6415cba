#include "lancet/eval/scoring.h"

#include <torch/types.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "lancet/core/progress.h"
#include "lancet/models/batching.h"
#include "lancet/models/memory.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/host_workers.h"

namespace lancet {
namespace {

/// A target after a prompt. Its document is the prompt with the target, without the target's last token.
struct Pair {
  int64_t document = 0;
  int64_t first_place = 0;  ///< the position that predicts the target's first token: the prompt's last token
  std::span<const TokenId> target;
};

/// Continuations without duplicates, and how they are run.
struct ScoringPlan {
  std::vector<std::vector<TokenId>> documents;
  std::vector<Pair> pairs;
  std::vector<int64_t> pair_of;  ///< index of each continuation's pair
  RowBatches packs;              ///< indices of documents
  RowBatches batches;            ///< for each pack, the pairs of its documents, in their order
  size_t longest_target = 0;
};

/// Documents of more than `apart` tokens are scored separately from others.
ScoringPlan plan_scoring(std::span<const Continuation> continuations,
                         int64_t apart = std::numeric_limits<int64_t>::max()) {
  ScoringPlan plan;
  std::map<std::vector<TokenId>, int64_t> documents;
  std::map<std::tuple<int64_t, int64_t, TokenId>, int64_t> pairs;
  RowBatches pairs_of;
  for (const auto& [prompt, target] : continuations) {
    std::vector<TokenId> ids = prompt;
    ids.insert(ids.end(), target.begin(), target.end() - 1);
    const auto [document, is_new_document] = documents.try_emplace(ids, static_cast<int64_t>(plan.documents.size()));
    if (is_new_document) {
      plan.documents.push_back(std::move(ids));
      pairs_of.emplace_back();
    }
    const Pair pair{document->second, static_cast<int64_t>(prompt.size()) - 1, target};
    // the document lacks only the last token of the target
    const auto [at, is_new_pair] =
        pairs.try_emplace({pair.document, pair.first_place, target.back()}, static_cast<int64_t>(plan.pairs.size()));
    if (is_new_pair) {
      plan.pairs.push_back(pair);
      pairs_of[static_cast<size_t>(pair.document)].push_back(at->second);
      plan.longest_target = std::max(plan.longest_target, target.size());
    }
    plan.pair_of.push_back(at->second);
  }
  plan.packs = plan_packs(plan.documents, kForwardTokens, apart);
  for (const std::vector<int64_t>& pack : plan.packs) {
    std::vector<int64_t>& batch = plan.batches.emplace_back();
    for (const int64_t document : pack) {
      const std::vector<int64_t>& more = pairs_of[static_cast<size_t>(document)];
      batch.insert(batch.end(), more.begin(), more.end());
    }
  }
  return plan;
}

/// A token of a target, and the index of the output of the pass that predicts it.
struct Label {
  int64_t output = 0;
  TokenId id = 0;
};

/// A pack of documents. A label reads every output, so there are at most as many outputs as labels.
struct Pack {
  TokenBatch batch;
  std::vector<Label> labels;  ///< the labels of the pairs, in their order
};

Pack make_pack(const ScoringPlan& plan, size_t number) {
  std::vector<std::span<const TokenId>> documents;
  for (const int64_t document : plan.packs[number])
    documents.emplace_back(plan.documents[static_cast<size_t>(document)]);
  Pack pack{make_packed_batch(documents), {}};
  SequenceInfo& sequence = pack.batch.sequence;
  const int64_t* token_at = sequence.places_P.defined() ? sequence.places_P.const_data_ptr<int64_t>() : nullptr;
  std::vector<int64_t> outputs, output_of(static_cast<size_t>(pack.batch.ids_BT.size(1)), -1);
  int64_t begin = 0;
  int64_t document = plan.packs[number].front();
  size_t n_before = 0;  // number of earlier documents
  for (const int64_t row : plan.batches[number]) {
    const Pair& pair = plan.pairs[static_cast<size_t>(row)];
    for (; document != pair.document; document = plan.packs[number][n_before])
      begin += static_cast<int64_t>(documents[n_before++].size());
    for (size_t j = 0; j < pair.target.size(); ++j) {
      const int64_t place = begin + pair.first_place + static_cast<int64_t>(j);
      const int64_t token = token_at != nullptr ? token_at[place] : place;
      int64_t& output = output_of[static_cast<size_t>(token)];
      if (output < 0) {
        output = static_cast<int64_t>(outputs.size());
        outputs.push_back(token);
      }
      pack.labels.push_back({output, pair.target[j]});
    }
  }
  sequence.outputs_BO = torch::tensor(outputs, torch::kLong).unsqueeze(0);
  return pack;
}

/// What the model predicts at a label's position.
struct Reading {
  double nll = 0;
  TokenId argmax = 0;
};

std::vector<Reading> read_labels(const CausalLM& model, const Tensor& h_OD, const std::vector<Label>& labels) {
  const int64_t vocabulary = model.config().vocab_size;
  const auto output_of = [&](size_t label) { return labels[label].output; };
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return output_of(a) < output_of(b); });
  std::vector<int64_t> cells;  // indices in the flattened table of all logits
  for (const size_t label : order) cells.push_back(output_of(label) * vocabulary + labels[label].id);
  const Tensor cell_L = to_index(cells, h_OD.device());
  std::vector<Tensor> nll_parts, argmax_parts;
  int64_t first = 0;  // index of the first of these labels
  const int64_t together = rows_per_head_call(model.config(), model.placement().weight_dtype());
  for (int64_t begin = 0; begin < h_OD.size(0); begin += together) {
    const int64_t end = std::min(begin + together, h_OD.size(0));
    const Tensor logits = model.logits(h_OD.slice(0, begin, end)).to(model.placement().value_dtype());
    argmax_parts.push_back(logits.argmax(1));
    const auto last = std::lower_bound(cells.begin() + first, cells.end(), end * vocabulary) - cells.begin();
    const Tensor cell = cell_L.slice(0, first, last) - begin * vocabulary;
    nll_parts.push_back(-torch::log_softmax(logits, 1).flatten().index_select(0, cell));
    first = last;
  }
  const std::vector<double> nll = to_doubles(torch::cat(nll_parts));
  const std::vector<double> argmax = to_doubles(torch::cat(argmax_parts));
  std::vector<Reading> readings(labels.size());
  for (size_t i = 0; i < order.size(); ++i)
    readings[order[i]] = {nll[i], static_cast<TokenId>(argmax[static_cast<size_t>(output_of(order[i]))])};
  return readings;
}

/// Returns for each pair of the pack its nll, followed by the argmax at each position of its target: [pairs, 1 +
/// longest target] f64 on the host.
Tensor score_pack(const CausalLM& model, const ScoringPlan& plan, size_t number, StageTurn& turn) {
  Pack pack = make_pack(plan, number);
  pack.batch.sequence.turn = &turn;
  const Tensor h_1OD =
      model.run_layers(model.embed(pack.batch.ids_BT, pack.batch.sequence), pack.batch.sequence, model.all_layers());
  const std::vector<Reading> readings = read_labels(model, h_1OD.squeeze(0), pack.labels);
  const std::vector<int64_t>& pairs = plan.batches[number];
  Tensor scores_RX =
      torch::zeros({static_cast<int64_t>(pairs.size()), 1 + static_cast<int64_t>(plan.longest_target)}, torch::kDouble);
  double* row = scores_RX.mutable_data_ptr<double>();
  auto reading = readings.begin();
  for (const int64_t pair : pairs) {
    const size_t n_labels = plan.pairs[static_cast<size_t>(pair)].target.size();
    for (size_t j = 0; j < n_labels; ++j, ++reading) {
      row[0] += reading->nll / static_cast<double>(n_labels);
      row[1 + j] = static_cast<double>(reading->argmax);
    }
    row += scores_RX.size(1);
  }
  return scores_RX;
}

}  // namespace

ScoringSize ScoringSize::of_whole_documents(int64_t tokens, int64_t longest_document, int64_t read_places) {
  const int64_t together = std::min(tokens, std::max(kForwardTokens, longest_document));
  return {.tokens = tokens,
          .pack_tokens = together,
          .pack_places = together,
          .run_places = together,
          .document_tokens = longest_document,
          .read_places = read_places};
}

ScoringSize scoring_size(std::span<const Continuation> continuations) {
  const ScoringPlan plan = plan_scoring(continuations);
  ScoringSize size;
  for (size_t i = 0; i < plan.packs.size(); ++i) {
    const SequenceInfo sequence = make_pack(plan, i).batch.sequence;
    int64_t places = 0;
    for (const DocumentRun& run : sequence.packed) {
      places += run.documents * run.tokens;
      size.run_places = std::max(size.run_places, run.documents * run.tokens);
      size.document_tokens = std::max(size.document_tokens, run.tokens);
    }
    const int64_t tokens = sequence.lengths.front();
    size.tokens += tokens;
    size.pack_tokens = std::max(size.pack_tokens, tokens);
    size.pack_places = std::max(size.pack_places, places);
    size.read_places += sequence.outputs_BO.size(1);
  }
  return size;
}

std::vector<ContinuationScore> score_continuations(const CausalLM& model, std::span<const Continuation> continuations,
                                                   const std::string& stage, Communicator& communicator) {
  const torch::NoGradGuard no_grad;
  const ScoringPlan plan = plan_scoring(continuations, longest_usual_text(model.config()));
  Progress progress(stage, count_own_rows(communicator, plan.batches), "continuations");
  progress.measure_by(
      // all have about the same number of tokens
      "", static_cast<int64_t>(own_pieces(communicator, plan.batches.size()).size()));
  const Tensor scores_NX = scatter_rows(communicator, RowWork{model.placement(), stage}, plan.batches,
                                        {torch::kDouble, Placement::host()}, [&](size_t pack, StageTurn& turn) {
                                          const Tensor scores_RX = score_pack(model, plan, pack, turn);
                                          progress.advance_pieces();
                                          progress.advance(scores_RX.size(0));
                                          return scores_RX;
                                        });
  std::vector<ContinuationScore> scores;
  for (size_t i = 0; i < continuations.size(); ++i) {
    const double* row = scores_NX.const_data_ptr<double>() + plan.pair_of[i] * scores_NX.size(1);
    ContinuationScore& score = scores.emplace_back();
    score.nll = row[0];
    for (size_t j = 0; j < continuations[i].target.size(); ++j)
      score.argmax.push_back(static_cast<TokenId>(row[1 + j]));
  }
  return scores;
}

}  // namespace lancet
