// Functions for probes and their given answers, which several protocols use.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/eval/protocol.h"

namespace lancet {

/// The length of texts in the published protocols, with the prompt.
inline constexpr int64_t kLongTextTokens = 100;

/// Asks for a text of kLongTextTokens tokens. Returns its index among the answers.
size_t ask_long_text(QuestionCollector& collector, std::string_view prompt);

/// Asks for the first answer of each probe. Probes without an answer are left out. Returns the indices of the scores.
std::vector<size_t> ask_probes(QuestionCollector& collector, std::span<const Probe> probes);

/// Returns the prompts as probes that all have the same answer.
std::vector<Probe> probes_of(std::span<const std::string> prompts, const std::string& answer);

/// Returns what the edit should not change: the record's sections, and as section "neighborhood" its prompts about
/// other subjects with the true target, if it is known.
std::vector<ProbeSection> locality_sections(const EditRequest& request);

/// Returns the mean over the scores of the share of target tokens that are the likeliest ones at their positions;
/// nullopt if there are no scores.
std::optional<double> mean_token_match(std::span<const size_t> scores, const ModelAnswers& now);

/// Adds an outcome if there is one.
void add_outcome(Tally& tally, std::optional<double> outcome);

}  // namespace lancet
