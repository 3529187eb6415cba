// Which prompts of an output's edits a server is asked, and how it is asked.
#pragma once

#include <vector>

#include "lancet/journal/journal.h"
#include "lancet/push/push_job.h"

namespace lancet {

/// Edited prompts, paraphrases and neighbours of edits that stand and that no later one replaced; of each at most
/// `most`, those of the latest edits, a prompt of each edit before a second one of any.
std::vector<AskedPrompt> prompts_to_ask(const Journal& journal, int64_t most);

/// Which adapter's answers they are; CompletionQuestion has both names.
struct AskedAdapter {
  std::string name = {};
  std::string without = {};
};

/// What the server writes after each of them, in their order. `stage`: what the progress shows.
std::vector<std::string> ask_prompts(InferenceServer& server, const std::vector<AskedPrompt>& prompts,
                                     const AskedAdapter& adapter, const std::string& stage);

/// A line for each threshold that was missed.
std::vector<std::string> unmet_push_thresholds(const PushJob& job, const std::vector<AskedPrompt>& asked);

}  // namespace lancet
