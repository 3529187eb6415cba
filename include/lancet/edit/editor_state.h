// What a method carries from one batch of edits to the next, as data: a stream of edits can stop, and go on in another
// process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Keys of earlier edits, running normalisers, anchors: named tensors on the host.
struct EditorState {
  std::map<std::string, Tensor> tensors;
  int64_t edits = 0;  ///< requests edited so far
};

/// Whose state a file holds: it fits no other method, and no other model.
struct StateOwner {
  std::string method;
  std::string base_hash;  ///< Checkpoint::content_hash of the unedited model
};

/// A safetensors file with every tensor under its name, in its dtype; metadata: format lancet-state-1, method,
/// base_hash, edits. Throws: CheckpointError when the disk refuses.
void save_state(const std::filesystem::path& path, const EditorState& state, const StateOwner& owner);

/// Throws: CheckpointError when the file is damaged or no state; ConfigError when it is another owner's.
EditorState load_state(const std::filesystem::path& path, const StateOwner& owner);

/// The columns that the state has under `name` ([F, M] f64); undefined when it has none.
Tensor columns_of(const EditorState& state, const std::string& name);

/// Puts `columns_FN` behind the columns that the state has under `name`. At most 2 F are kept: more are replaced by F
/// that have the same H H^T, which is all that a history of keys is used for.
void append_columns(EditorState& state, const std::string& name, const Tensor& columns_FN);

}  // namespace lancet
