#include "lancet/eval/evaluate.h"

#include <torch/types.h>

#include <algorithm>
#include <map>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/models/generate.h"
#include "lancet/models/spread_rows.h"

namespace lancet {
namespace {

std::string metric_name(MetricGroup group, std::string_view form) {
  for (const MetricGroupRow& row : kMetricGroups)
    if (row.group == group) return cat(row.name, "_", form);
  return {};
}

}  // namespace

EvaluationPlan::EvaluationPlan(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                               EvaluationOptions options)
    : tokenizer_(tokenizer), options_(std::move(options)), n_requests_(requests.size()) {
  std::vector<std::string> problems;
  for (size_t i = 0; i < requests.size(); ++i) {
    const EditRequest& request = requests[i];
    try {
      if (options_.groups.contains(MetricGroup::kEfficacy))
        add_probe(i, request, MetricGroup::kEfficacy, request.prompt.text);
      if (options_.groups.contains(MetricGroup::kParaphrase))
        for (const std::string& prompt : request.paraphrases) add_probe(i, request, MetricGroup::kParaphrase, prompt);
      if (options_.groups.contains(MetricGroup::kSpecificity))
        for (const std::string& prompt : request.neighborhood) add_probe(i, request, MetricGroup::kSpecificity, prompt);
      if (options_.groups.contains(MetricGroup::kGeneration)) prompts_.push_back(tokenizer.ids(request.prompt.text));
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  if (!problems.empty()) throw ConfigError(join(problems, "\n"));
}

void EvaluationPlan::add_probe(size_t request, const EditRequest& texts, MetricGroup group, const std::string& prompt) {
  const std::string where = cat("request ", texts.id, ", prompt '", prompt, "'");
  const std::vector<TokenId> prompt_ids = tokenizer_.ids(prompt);
  const auto add = [&](const std::string& target) {
    continuations_.push_back({prompt_ids, continuation_ids(tokenizer_, prompt, target, where)});
    return continuations_.size() - 1;
  };
  Probe probe{request, group, add(texts.target), {}};
  if (texts.target_true) probe.target_true = add(*texts.target_true);
  probes_.push_back(probe);
}

EvaluationPlan EvaluationPlan::scores_of(std::span<const int64_t> requests) const {
  EvaluationPlan some(tokenizer_, options_, requests.size());
  std::map<size_t, size_t> places;
  for (size_t i = 0; i < requests.size(); ++i) places[static_cast<size_t>(requests[i])] = i;
  const auto take = [&](std::optional<size_t> continuation) -> std::optional<size_t> {
    if (!continuation) return std::nullopt;
    some.continuations_.push_back(continuations_[*continuation]);
    return some.continuations_.size() - 1;
  };
  for (const Probe& probe : probes_)
    if (const auto place = places.find(probe.request); place != places.end())
      some.probes_.push_back({place->second, probe.group, take(probe.target_new), take(probe.target_true)});
  return some;
}

EvaluationSize EvaluationPlan::size() const {
  EvaluationSize size;
  size.scoring = scoring_size(continuations_);
  size.generation.rows = static_cast<int64_t>(prompts_.size());
  for (const std::vector<TokenId>& prompt : prompts_)
    size.generation.prompt_tokens = std::max(size.generation.prompt_tokens, static_cast<int64_t>(prompt.size()));
  size.generation.row_tokens = size.generation.prompt_tokens + options_.continuation_tokens;
  return size;
}

Evaluation EvaluationPlan::run(const CausalLM& model, const std::string& stage, Communicator& communicator) const {
  std::vector<ContinuationScore> scores;
  if (!continuations_.empty()) scores = score_continuations(model, continuations_, stage, communicator);
  Evaluation evaluation;
  evaluation.requests.resize(n_requests_);
  for (Tallies& tallies : evaluation.requests)
    for (const MetricRow& row : metric_table())
      if (options_.groups.contains(row.group)) tallies[std::string(row.name)];
  for (const Probe& probe : probes_) {
    Tallies& tallies = evaluation.requests[probe.request];
    const bool wants_new = probe.group != MetricGroup::kSpecificity;
    const std::optional<size_t> wanted = wants_new ? probe.target_new : probe.target_true;
    const std::optional<size_t> other = wants_new ? probe.target_true : probe.target_new;
    const auto count = [&](const char* form, int64_t hit) {
      Tally& tally = tallies[metric_name(probe.group, form)];
      tally.hits += hit;
      ++tally.prompts;
    };
    if (wanted) count("argmax", is_argmax(continuations_[*wanted], scores[*wanted]) ? 1 : 0);
    if (wanted && other) count("prob", scores[*wanted].nll < scores[*other].nll ? 1 : 0);
  }
  evaluation.totals = pooled(evaluation.requests);
  if (!prompts_.empty()) evaluation.continuations = continue_prompts(model, stage, communicator);
  return evaluation;
}

std::vector<std::string> EvaluationPlan::continue_prompts(const CausalLM& model, const std::string& stage,
                                                          Communicator& communicator) const {
  const int64_t most = options_.continuation_tokens;
  std::vector<int64_t> lengths;
  for (const std::vector<TokenId>& prompt : prompts_) lengths.push_back(static_cast<int64_t>(prompt.size()) + most);
  // of each row how many ids there are, and these
  const Tensor ids_NX =
      spread_rows(communicator, stage, plan_batches(lengths, {.tokens = kForwardTokens}),
                  {at::kLong, Placement::host()}, [&](const std::vector<int64_t>& batch) {
                    std::vector<GenerateRow> rows;
                    for (const int64_t row : batch) rows.push_back({prompts_[static_cast<size_t>(row)], most});
                    Tensor ids_RX = torch::zeros({static_cast<int64_t>(rows.size()), most + 1}, at::kLong);
                    int64_t* at = ids_RX.mutable_data_ptr<int64_t>();
                    for (const std::vector<TokenId>& ids : generate(model, rows, {.eos_ids = model.config().eos_ids})) {
                      *at = static_cast<int64_t>(ids.size());
                      std::copy(ids.begin(), ids.end(), at + 1);
                      at += most + 1;
                    }
                    return ids_RX;
                  });
  std::vector<std::string> texts;
  for (int64_t row = 0; row < ids_NX.size(0); ++row) {
    const int64_t* at = ids_NX.const_data_ptr<int64_t>() + row * ids_NX.size(1);
    texts.push_back(tokenizer_.decode(std::vector<TokenId>(at + 1, at + 1 + at[0])));
  }
  return texts;
}

}  // namespace lancet
