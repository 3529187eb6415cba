// Where a stream of edits stands, as files: what has been changed so far, exactly, and what the method carries. Another
// process goes on with it as if there had been no end.
#pragma once

#include <filesystem>
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

struct StreamState {
  EditorState editor;
  std::vector<WeightChanges> changes;    ///< in the order of the first one
  std::vector<std::string> request_ids;  ///< of each column of every weight's low-rank changes
};

/// What is known of a stream without reading its tensors.
struct StreamFacts {
  StateOwner owner;
  std::string editor;  ///< the editor's options, as YAML
};

/// `beside` of the facts' owner is empty where the files are of an earlier version. Reads headers alone.
/// Throws: CheckpointError when the folder holds no stream or its header is damaged.
StreamFacts read_stream_facts(const std::filesystem::path& folder);

/// Reads both files and keeps nothing. Throws: CheckpointError when one is damaged.
void check_stream(const std::filesystem::path& folder);

/// Throws: as check_stream() and load_state(), also when a changed weight is none of the model's or of another shape.
StreamState load_stream(const std::filesystem::path& folder, const StateOwner& owner, const ModelConfig& config);

/// Collective: root's, on every rank, bit by bit.
void share_stream(StreamState& stream, const ModelConfig& config, Communicator& communicator);

/// Of a stream under way: what the transaction has changed so far.
std::vector<WeightChanges> changes_of(const WeightTransaction& transaction);

/// Applies the changes to a transaction that has none, each on its weight's device.
void restore_changes(const std::vector<WeightChanges>& changes, const CausalLM& model, WeightTransaction& transaction);

}  // namespace lancet
