// The folder state/ as earlier versions wrote it, so that reading it stays tested.
#pragma once

#include <filesystem>

#include "lancet/deltas/stream_state.h"

namespace lancet::testing {

/// A sealed file with every tensor under its name, in its dtype; facts: format lancet-state-2, method, base_hash,
/// beside, edits. Throws: CheckpointError when the disk refuses.
void save_state(const std::filesystem::path& path, const EditorState& state, const StateOwner& owner);

/// Two sealed files in `folder`, which exists: the editor's state (save_state), beside changes.safetensors:
/// the changes as to_named() has them; facts: format lancet-changes-2, base_hash, method, beside, editor, requests
/// (JSON list of ids, one per column). Throws: CheckpointError when the disk refuses.
void save_stream(const std::filesystem::path& folder, const StreamState& stream, const StreamFacts& facts,
                 const ModelConfig& config);

/// Writes the same two files of version 0.1 before files had a hash: formats lancet-changes-1 and lancet-state-1, which
/// do not tell what lies beside them.
void save_unsealed_stream(const std::filesystem::path& folder, const StreamState& stream, const StreamFacts& facts,
                          const ModelConfig& config);

enum class OldFormat { kSealed, kUnsealed };

/// Makes an output what an earlier version would have written: state/ in the place of edits/. `fresh`:
/// Editor::make_state() of its method.
void make_old_output(const std::filesystem::path& output, const EditorState& fresh, const ModelConfig& config,
                     OldFormat format);

}  // namespace lancet::testing
