// State of a stream of edits: what has been changed so far, exactly, and what the method carries. Earlier versions
// wrote it as two files in an output's folder state/: the editor's state, beside changes.safetensors with the changes
// (NamedTensors); facts: format lancet-changes-2, base_hash, method, beside, editor, requests (JSON list of
// ids, one per column).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lancet/checkpoint/sealed_file.h"
#include "lancet/deltas/weight_update.h"
#include "lancet/models/tensor_io.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

// What a method carries from one batch of edits to the next, as data: a stream of edits can stop, and go on in another
// process.

/// Named tensors on the host. Those of edits have a column each, batch after batch: `keys.<layer>` (history; with a
/// text budget T k below k), `curvature.{keys,gradients}.<layer>` (crispedit), `texts.{ids,sizes}` (revisit). The
/// others are a method's own: `lost.<layer>` (error feedback), `norm_anchor.<layer>`, `auto.<option>.<layer>`,
/// `normaliser.<in>x<out>.{count,mean,squares,scatter}`.
struct EditorState {
  std::map<std::string, Tensor> tensors;
  int64_t edits = 0;  ///< requests edited so far
};

/// Whose state a file holds: it fits no other method, no other model, and none but the files it was written with.
struct StateOwner {
  std::string method;
  std::string base_hash;    ///< Checkpoint::content_hash of the unedited model
  std::string beside = {};  ///< a hash of what lies beside the file; empty: nothing does
};

/// Checks a file by its facts method, base_hash and beside. Throws: ConfigError when the file is another method's or
/// model's, CheckpointError when it was not written beside what `owner` says; files without a hash do not tell that.
void check_owner(const SealedFile& file, const StateOwner& owner);

/// A state as earlier versions wrote it: a sealed file with every tensor under its name; facts: format lancet-state-2,
/// method, base_hash, beside, edits. One of format lancet-state-1, which has no hash, is read with a warning.
/// Throws: as check_owner(); CheckpointError when the file is damaged or no state.
EditorState load_state(const std::filesystem::path& path, const StateOwner& owner);

/// The columns that the state has under `name` ([F, M] f64); undefined when it has none.
Tensor columns_of(const EditorState& state, const std::string& name);

/// The columns of both, those of `earlier_FM` first; either may be undefined.
Tensor joined_columns(const Tensor& earlier_FM, const Tensor& fresh_FN);

/// Puts `columns_FN` after the columns that the state has under `name`. At most 2 F are kept: more are replaced by F
/// that have the same H H^T, which is all that a history of keys is used for.
void append_columns(EditorState& state, const std::string& name, const Tensor& columns_FN);

/// What a state has that an earlier one had not.
struct StateStep {
  std::map<std::string, Tensor> appended = {};  ///< columns after those of the earlier one
  std::map<std::string, Tensor> replaced = {};  ///< tensors that are new, or others
  int64_t edits = 0;                            ///< requests between the two
};

/// Returns what `after` has that `before` had not. `after` keeps every name of `before`. Tensors are shared where they
/// are whole.
StateStep step_between(const EditorState& before, const EditorState& after);
/// Turns `state` into the one that the step led to, with the same bits. Throws: CheckpointError when the step does not
/// fit the state.
void advance(EditorState& state, const StateStep& step);

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

// Changes of weights as the tensors of a file.

/// `NAME/0/left`, `NAME/0/right` or `NAME/0/full`, `NAME/1/...` for each weight NAME, each [d_out, r], [r, d_in] or
/// [d_out, d_in] in its own type.
NamedTensors to_named(const std::vector<WeightChanges>& changes, const ModelConfig& config);

/// The inverse of to_named. Throws: CheckpointError for what it cannot have made.
std::vector<WeightChanges> to_changes(const NamedTensors& named, const ModelConfig& config);

}  // namespace lancet
