// What a model says in place of a fact.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/requests/request.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// Made-up subjects that a model is asked about for each prompt.
inline constexpr int64_t kMadeUpSubjects = 8;

/// Names that nobody has: "Vorkel Tandris". The same for the same seed, on every machine.
std::vector<std::string> made_up_subjects(uint64_t seed, int64_t count);

/// Returns the first word of the greedy continuation of each prompt, without punctuation at its end; empty where the
/// model goes on with the prompt's last word, or with none.
std::vector<std::string> first_words(const CausalLM& model, const Tokenizer& tokenizer,
                                     std::span<const std::string> prompts);

/// Returns for each request the word that the model says most often after its prompt about made-up subjects, and that
/// is not of the request's old answer (`old_answers`); of several the earliest. Throws: ConfigError for requests
/// without a subject, and for prompts after which the model says nothing else.
std::vector<std::string> neutral_targets(const CausalLM& model, const Tokenizer& tokenizer,
                                         std::span<const EditRequest> requests,
                                         std::span<const std::string> old_answers, uint64_t seed);

}  // namespace lancet
