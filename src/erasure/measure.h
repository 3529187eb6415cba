// Asks a model for facts, with its current weights.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/erasure/audit.h"
#include "lancet/eval/evaluation_size.h"
#include "lancet/job/job_config.h"
#include "lancet/models/causal_lm.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// How answers are sampled.
struct SampledAnswers {
  int64_t samples = 0;
  double temperature = 1;
  int64_t tokens = 0;
  uint64_t seed = 0;
};
SampledAnswers sampled_answers(const JobConfig& job);

/// Returns the size of an audit of these facts. Their prompts need not be known yet.
EvaluationSize audit_size(std::span<const EditRequest> requests, const Tokenizer& tokenizer,
                          const SampledAnswers& sampled);

/// Returns what the model says after each prompt of each fact.
std::vector<std::vector<PromptAudit>> ask_prompts(const CausalLM& model, const Tokenizer& tokenizer,
                                                  std::span<const ErasedFact> facts, const std::string& stage);

/// Runs the whole audit. Throws: ConfigError if an answer cannot be the target of a prompt; NumericError if the logit
/// lens gives a number that is not finite.
std::vector<FactAudit> ask_facts(const CausalLM& model, const Tokenizer& tokenizer, std::span<const ErasedFact> facts,
                                 const SampledAnswers& sampled, const std::string& stage);

}  // namespace lancet
