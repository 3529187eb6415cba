// State of a stream of edits: what has been changed so far, exactly, and what the method carries. Earlier versions
// wrote it as two files in an output's folder state/: the editor's state, beside changes.safetensors with the changes
// (deltas/named_changes.h); facts: format lancet-changes-2, base_hash, method, beside, editor, requests (JSON list of
// ids, one per column).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lancet/deltas/editor_state.h"
#include "lancet/deltas/weight_update.h"
#include "lancet/runtime/communicator.h"

namespace lancet {

/// A weight's changes, one by one, in the order of their application.
struct WeightChanges {
  WeightId id;
  std::vector<WeightDelta> deltas;
};

/// Whether one of them is of low rank; dense ones are of all requests together.
bool has_columns(const std::vector<WeightChanges>& changes);

struct StreamState {
  EditorState editor;
  std::vector<WeightChanges> changes;    ///< weights in the order of their first change
  std::vector<std::string> request_ids;  ///< request of each column of every weight's low-rank changes
};

/// What is known of a stream without reading its tensors.
struct StreamFacts {
  StateOwner owner;
  std::string editor;  ///< the editor's options, as YAML
};

/// Reads what is known of a stream, from headers alone. `beside` of the facts' owner is empty where the files are of an
/// earlier version.
/// Throws: CheckpointError when the folder holds no stream or its header is damaged.
StreamFacts read_stream_facts(const std::filesystem::path& folder);

/// Throws: as load_state(); CheckpointError when a file is damaged, and when a changed weight is none of the model's or
/// of another shape.
StreamState load_stream(const std::filesystem::path& folder, const StateOwner& owner, const ModelConfig& config);

/// Collective: root's, on every rank, bit by bit.
void share_stream(StreamState& stream, const ModelConfig& config, Communicator& communicator);

/// What a transaction has changed so far.
std::vector<WeightChanges> changes_of(std::span<const WeightTransaction::Entry> entries);

/// Applies the changes to a transaction that has none, each on its weight's device.
void restore_changes(const std::vector<WeightChanges>& changes, const CausalLM& model, WeightTransaction& transaction);

}  // namespace lancet
