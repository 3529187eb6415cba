#include "measure.h"

#include <algorithm>
#include <cmath>

#include "audit_prompts.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/eval/scoring.h"
#include "lancet/models/generate.h"
#include "lancet/runtime/communicator.h"
#include "lancet/text/prompt.h"
#include "lancet/text_metrics/answer_match.h"
#include "logit_lens.h"

namespace lancet {
namespace {

constexpr int64_t kOrderTokens = 32;  ///< tokens that the longest prompt of the kind `order` adds to two prompts

Continuation continuation_of(const Tokenizer& tokenizer, const ErasedFact& fact, const std::string& prompt) {
  ContinuedPrompt continued =
      continue_prompt(tokenizer, prompt, fact.old_answer, cat("request ", fact.request.id, ": old answer"));
  return {std::move(continued.prompt.ids), std::move(continued.target)};
}

void draw_answers(const CausalLM& model, const Tokenizer& tokenizer, std::span<const ErasedFact> facts,
                  const SampledAnswers& sampled, std::vector<FactAudit>& audits) {
  if (sampled.samples == 0) return;
  std::vector<GenerateRow> rows;
  for (const ErasedFact& fact : facts)
    rows.insert(rows.end(), static_cast<size_t>(sampled.samples),
                {tokenizer.ids(fact.request.prompt.text), sampled.tokens});
  GenerateOptions options;
  options.sampling = {.temperature = sampled.temperature, .top_k = 0, .seed = sampled.seed};
  if (const std::optional<TokenId> end = tokenizer.eos_id()) options.eos_ids = {*end};
  const std::vector<std::vector<TokenId>> drawn = generate(model, rows, options);
  for (size_t i = 0; i < drawn.size(); ++i) {
    const size_t f = i / static_cast<size_t>(sampled.samples);
    const std::string text = tokenizer.decode(drawn[i]);
    const std::string answers[] = {facts[f].old_answer};
    FactAudit& audit = audits[f];
    if (audit.samples++ == 0) audit.sample = text;
    if (contains(text, answers)) ++audit.sampled;
  }
}

}  // namespace

SampledAnswers sampled_answers(const JobConfig& job) {
  return {job.erase->samples, job.erase->temperature, job.erase->tokens, job.run.seed};
}

EvaluationSize audit_size(std::span<const EditRequest> requests, const Tokenizer& tokenizer,
                          const SampledAnswers& sampled) {
  int64_t longest = 0, prompts = 0;
  for (const EditRequest& request : requests) {
    longest = std::max(longest, static_cast<int64_t>(tokenizer.ids(request.prompt.text).size()));
    for (const std::string& paraphrase : request.paraphrases)
      longest = std::max(longest, static_cast<int64_t>(tokenizer.ids(paraphrase).size()));
    prompts += static_cast<int64_t>(request.paraphrases.size() + audit_openings().size()) + 4;
  }
  const int64_t row = 2 * longest + kOrderTokens;
  return {.scoring = ScoringSize::of_whole_documents(prompts * row, row, prompts * kOrderTokens),
          .generation = {std::max<int64_t>(1, sampled.samples) * static_cast<int64_t>(requests.size()),
                         longest + sampled.tokens,
                         longest,
                         {.temperature = sampled.temperature, .top_k = 0}}};
}

std::vector<std::vector<PromptAudit>> ask_prompts(const CausalLM& model, const Tokenizer& tokenizer,
                                                  std::span<const ErasedFact> facts, const std::string& stage) {
  std::vector<Continuation> continuations;
  for (const ErasedFact& fact : facts)
    for (const AuditPrompt& prompt : fact.prompts)
      continuations.push_back(continuation_of(tokenizer, fact, prompt.text));
  const std::vector<ContinuationScore> scores = score_continuations(model, continuations, stage, alone());
  std::vector<std::vector<PromptAudit>> asked;
  size_t at = 0;
  for (const ErasedFact& fact : facts) {
    asked.emplace_back();
    for (size_t p = 0; p < fact.prompts.size(); ++p, ++at) {
      const std::vector<TokenId>& target = continuations[at].target;
      asked.back().push_back({.said = scores[at].argmax == target,
                              .probability = std::exp(-scores[at].nll * static_cast<double>(target.size()))});
    }
  }
  return asked;
}

std::vector<FactAudit> ask_facts(const CausalLM& model, const Tokenizer& tokenizer, std::span<const ErasedFact> facts,
                                 const SampledAnswers& sampled, const std::string& stage) {
  std::vector<FactAudit> audits(facts.size());
  std::vector<std::vector<PromptAudit>> asked = ask_prompts(model, tokenizer, facts, stage);
  for (size_t f = 0; f < facts.size(); ++f) {
    const Continuation own = continuation_of(tokenizer, facts[f], facts[f].request.prompt.text);
    LogitLens lens = look_through(model, own.prompt, own.target.front());
    audits[f] = {.asked = std::move(asked[f]),
                 .lens_probability = std::move(lens.probability),
                 .lens_rank = std::move(lens.rank)};
    count_progress();
  }
  draw_answers(model, tokenizer, facts, sampled, audits);
  return audits;
}

}  // namespace lancet
