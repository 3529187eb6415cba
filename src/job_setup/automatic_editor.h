// Options that lancet chooses for a job without an editor, beyond those that are `auto` by themselves; `lancet init`
// writes the same. docs/benchmarks.md has what they change on SmolLM2-135M.
#pragma once

#include <string>
#include <vector>

#include "lancet/core/config_tree.h"
#include "lancet/job_setup/presets.h"
#include "lancet/models/model_files.h"

namespace lancet {

/// Whether the model is made for chats: it has a chat template that accepts a prompt.
bool is_for_chats(const ModelFiles& files);

/// Returns the contexts with one more, in which the prompt is a user's message. An edit of plain prompts alone seldom
/// holds in the answer to a user's message.
ConfigTree with_chat(ConfigTree contexts);

/// Returns what is measured by default of a model; `chats`: whether it is made for chats.
std::vector<std::string> protocols_for(bool chats);

/// Returns `editor.entities`.
ConfigTree automatic_entities();

/// Adds with_chat() to an editor whose options lancet chooses, and the protocol `chat` to what the job measures, if the
/// job's model is made for chats. Does nothing if the method has no contexts, or if an option excludes them
/// (`contexts`, `compat`, `values.chunk_tokens`). A model that cannot be opened is left for the job to refuse.
void choose_chat_context(ConfigTree& editor, ConfigTree& job, const JobSource& source);

/// Adds automatic_entities() to such an editor. Does nothing if the method has no such option, if `entities` or
/// `covariance` is given, or if the job imports null spaces, which have no moments.
void choose_entities(ConfigTree& editor, const ConfigTree& job);

}  // namespace lancet
