// Options that lancet chooses for a job without an editor, beyond those that are `auto` by themselves. They won on real
// models (docs/benchmarks.md).
#pragma once

#include "lancet/core/config_tree.h"
#include "lancet/job_setup/presets.h"
#include "lancet/models/model_files.h"

namespace lancet {

/// Whether the model is made for chats: it has a chat template that accepts a prompt.
bool is_for_chats(const ModelFiles& files);

/// Adds `contexts: {chat: model}` to an editor whose options lancet chooses, and the protocol `chat` to what the job
/// measures, if the job's model is made for chats. Does nothing if the method has no contexts, or if an option excludes
/// them (`contexts`, `compat`, `values.chunk_tokens`). An edit of plain prompts alone seldom holds there in the answer
/// to a user's message. A model that cannot be opened is left for the job to refuse.
void choose_chat_context(ConfigTree& editor, ConfigTree& job, const JobSource& source);

/// Adds `entities: {weight: 1}` to such an editor. Does nothing if the method has no such option, if `entities` or
/// `covariance` is given, or if the job imports null spaces, which have no moments.
void choose_entities(ConfigTree& editor, const ConfigTree& job);

/// The line of a job's `editor:` that counts other subjects.
inline constexpr const char* kEntitiesLine = "entities: {weight: 1}";

}  // namespace lancet
