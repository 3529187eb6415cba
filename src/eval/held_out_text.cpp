#include "lancet/eval/held_out_text.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/models/batching.h"
#include "lancet/models/memory.h"
#include "lancet/runtime/communicator.h"

namespace lancet {
namespace {

/// Measures at each position: -log p of the next token, KL from the old distribution, and whether the likeliest token
/// is the same. [M, 3].
Tensor measure_places(const CausalLM& model, const Tensor& h_MD, const Tensor& next_M, const Tensor& before_MD) {
  const auto log_p = [&](const Tensor& h) {
    return model.logits(h).to(model.placement().value_dtype()).log_softmax(1);
  };
  // two distributions for each position are in memory together
  const int64_t together =
      std::max<int64_t>(1, rows_per_head_call(model.config(), model.placement().weight_dtype()) / 2);
  std::vector<Tensor> parts;
  for (int64_t begin = 0; begin < h_MD.size(0); begin += together) {
    const int64_t end = std::min(begin + together, h_MD.size(0));
    const Tensor now = log_p(h_MD.slice(0, begin, end));
    const Tensor nll = -now.gather(1, next_M.slice(0, begin, end).unsqueeze(1)).squeeze(1).to(at::kDouble);
    Tensor kl = torch::zeros_like(nll), same = torch::ones_like(nll);
    if (before_MD.defined()) {
      const Tensor old = log_p(before_MD.slice(0, begin, end).to(h_MD.device()));
      kl = (old.exp() * (old - now)).to(at::kDouble).sum(1);
      same = (old.argmax(1) == now.argmax(1)).to(at::kDouble);
    }
    parts.push_back(torch::stack({nll, kl, same}, 1).to(Placement::host()));
  }
  return torch::cat(parts);
}

}  // namespace

HeldOutText::HeldOutText(const Tokenizer& tokenizer, const HeldOutOptions& options, int64_t max_positions) {
  DocumentReader reader(options.text);
  const auto cap = static_cast<size_t>(options.document_tokens);
  int64_t left = options.tokens;
  while (left > 0) {
    const std::optional<std::string> text = reader.next();
    if (!text) break;
    std::vector<TokenId> ids = tokenizer.ids(*text);
    ids.resize(std::min({ids.size(), cap, static_cast<size_t>(left)}));
    left -= static_cast<int64_t>(ids.size());
    if (ids.size() < 2) continue;  // there is nothing to predict
    predicted_ += static_cast<int64_t>(ids.size()) - 1;
    documents_.push_back(std::move(ids));
  }
  if (documents_.empty())
    throw ConfigError(cat("evaluate.side_effects.text: ", options.text.string(),
                          ": expected at least one document of two tokens among the first ", options.tokens,
                          " tokens"));
  if (longest_document() > max_positions)
    throw ConfigError(cat("evaluate.side_effects.document_tokens: a document of ", longest_document(),
                          " tokens, but the model has ", max_positions, " positions: choose fewer"));
  std::vector<int64_t> lengths;
  for (const std::vector<TokenId>& document : documents_) lengths.push_back(static_cast<int64_t>(document.size()));
  batches_ = plan_batches(lengths, {.tokens = kForwardTokens});
}

int64_t HeldOutText::longest_document() const {
  size_t longest = 0;
  for (const std::vector<TokenId>& document : documents_) longest = std::max(longest, document.size());
  return static_cast<int64_t>(longest);
}

std::vector<MetricRow> HeldOutText::metrics() const {
  const std::string where =
      cat(" on ", predicted_, " tokens of ", documents_.size(), " held-out documents, each but its first token");
  return {{"text_perplexity", "text", "exp of the mean -log p of a token" + where, Unit::kPerplexity, Better::kLower},
          {"text_nll", "text", "mean -log p of a token" + where, Unit::kNats, Better::kLower},
          {"text_kl", "text", "mean over tokens of KL(unedited || now), whole vocabulary," + where, Unit::kNats,
           Better::kLower},
          {"text_top1_agreement", "text", "share of tokens whose likeliest one is the unedited model's" + where}};
}

std::vector<Tallies> HeldOutText::measure(const CausalLM& model, const std::string& stage, Communicator& communicator,
                                          const HeldOutStates* before, HeldOutStates* states) const {
  const torch::NoGradGuard no_grad;
  Progress progress(stage, count_own_rows(communicator, batches_), "documents");
  progress.measure_by(
      "", static_cast<int64_t>(own_pieces(communicator, batches_.size()).size()));  // the longest documents are last
  size_t n_done = 0;
  const auto measure_batch = [&](const std::vector<int64_t>& rows) {
    std::vector<std::vector<TokenId>> ids;
    std::vector<int64_t> places, next;
    for (const int64_t row : rows) ids.push_back(documents_[static_cast<size_t>(row)]);
    TokenBatch batch = make_batch(ids);
    const int64_t width = batch.ids_BT.size(1);
    for (size_t i = 0; i < ids.size(); ++i)
      for (size_t t = 0; t + 1 < ids[i].size(); ++t) {
        places.push_back(static_cast<int64_t>(i) * width + static_cast<int64_t>(t));
        next.push_back(ids[i][t + 1]);
      }
    const Tensor h_BTD =
        model.run_layers(model.embed(batch.ids_BT, batch.sequence), batch.sequence, model.all_layers());
    const Tensor h_MD = h_BTD.flatten(0, 1).index_select(0, to_index(places, h_BTD.device()));
    const Tensor before_MD = before != nullptr ? before->batches_MD[n_done] : Tensor();
    const Tensor measured_M3 = measure_places(model, h_MD, to_index(next, h_MD.device()), before_MD);
    if (states != nullptr) states->batches_MD.push_back(h_MD.to(Placement::host()));
    ++n_done;
    Tensor sums_R3 = torch::zeros({static_cast<int64_t>(rows.size()), 3}, at::kDouble);
    int64_t at = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto n = static_cast<int64_t>(ids[i].size()) - 1;
      sums_R3[static_cast<int64_t>(i)] = measured_M3.slice(0, at, at + n).sum(0);
      at += n;
    }
    progress.advance_pieces();
    progress.advance(static_cast<int64_t>(rows.size()));
    return sums_R3;
  };
  const Tensor sums_N3 =
      scatter_rows(communicator, stage, batches_, {at::kDouble, Placement::host()}, measure_batch).contiguous();
  std::vector<Tallies> documents;
  for (size_t i = 0; i < documents_.size(); ++i) {
    const double* sums = sums_N3.const_data_ptr<double>() + 3 * i;
    const auto count = static_cast<int64_t>(documents_[i].size()) - 1;
    Tallies& document = documents.emplace_back();
    document["text_nll"] = {sums[0], count};
    if (before == nullptr) continue;
    document["text_kl"] = {sums[1], count};
    document["text_top1_agreement"] = {sums[2], count};
  }
  return documents;
}

void HeldOutText::conclude(Tallies& totals) {
  const Tally& nll = totals["text_nll"];
  totals["text_perplexity"] = {std::exp(*nll.mean()) * static_cast<double>(nll.count), nll.count};
}

}  // namespace lancet
