// Chooses the prompts of an output's edits for a server, and asks the server.
#pragma once

#include <vector>

#include "lancet/journal/journal.h"
#include "lancet/push/push_job.h"

namespace lancet {

/// Returns edited prompts, paraphrases and neighbours of active edits that no later edit replaced; at most `most` of
/// each kind, from the latest edits. Every edit has its first prompt before an edit has a second one.
std::vector<AskedPrompt> prompts_to_ask(const Journal& journal, int64_t most);

/// The adapter that should answer. CompletionQuestion has both names.
struct AskedAdapter {
  std::string name = {};
  std::string without = {};
};

/// Returns what the server writes after each prompt, in their order. `stage`: the stage that progress shows.
std::vector<std::string> ask_prompts(InferenceServer& server, const std::vector<AskedPrompt>& prompts,
                                     const AskedAdapter& adapter, const std::string& stage);

/// Returns a line for each threshold that was missed.
std::vector<std::string> unmet_push_thresholds(const PushJob& job, const std::vector<AskedPrompt>& asked);

}  // namespace lancet
