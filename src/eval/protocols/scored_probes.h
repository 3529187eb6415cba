// What several protocols do with probes and their given answers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/eval/protocol.h"

namespace lancet {

/// Texts of the published protocols have so many tokens, prompt included.
inline constexpr int64_t kLongTextTokens = 100;

/// Asks for a text of kLongTextTokens tokens. Returns its index among the answers.
size_t ask_long_text(QuestionCollector& collector, std::string_view prompt);

/// Asks for the first answer of each probe; one without an answer is left out. Returns the indices of the scores.
std::vector<size_t> ask_probes(QuestionCollector& collector, std::span<const Probe> probes);

/// The prompts, each with the same answer.
std::vector<Probe> probes_of(std::span<const std::string> prompts, const std::string& answer);

/// What the edit shall leave alone: the record's sections, and as section "neighborhood" its prompts of other subjects
/// with the true target, where that is known.
std::vector<ProbeSection> locality_sections(const EditRequest& request);

/// Mean over the scores of the share of their tokens that are the likeliest in their places; nullopt for no scores.
std::optional<double> mean_token_match(std::span<const size_t> scores, const ModelAnswers& now);

/// Adds an outcome where there is one.
void add_outcome(Tally& tally, std::optional<double> outcome);

}  // namespace lancet
