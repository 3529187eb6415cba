// Finds the neutral answer that a model gives instead of a fact.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lancet/models/causal_lm.h"
#include "lancet/requests/request.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// The number of made-up subjects for each prompt.
inline constexpr int64_t kMadeUpSubjects = 8;

/// Returns names that nobody has, like "Vorkel Tandris". The same seed gives the same names on every machine.
std::vector<std::string> made_up_subjects(uint64_t seed, int64_t count);

/// Returns the first word of the greedy continuation of each prompt, without punctuation at its end; empty if the model
/// continues the last word of the prompt, or writes no word.
std::vector<std::string> first_words(const CausalLM& model, const Tokenizer& tokenizer,
                                     std::span<const std::string> prompts);

/// Returns for each request the word that the model says most often after its prompt about made-up subjects, and that
/// does not occur in the old answer (`old_answers`); of several such words the earliest. Throws: ConfigError for
/// requests without a subject, and for prompts after which the model says nothing else.
std::vector<std::string> neutral_targets(const CausalLM& model, const Tokenizer& tokenizer,
                                         std::span<const EditRequest> requests,
                                         std::span<const std::string> old_answers, uint64_t seed);

}  // namespace lancet
