// The state of a stream of edits: the exact changes so far, and what the method carries on. Earlier versions wrote it
// as two files in the folder state/ of an output: the editor's state, and changes.safetensors with the changes
// (NamedTensors). The facts of the second file: format lancet-changes-2, base_hash, method, beside, editor, requests (a
// JSON list of ids, one per column).
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

// What a method carries from one batch of edits to the next, as data, so that a stream of edits can stop and continue
// in another process.

/// Named tensors on the host. Tensors with one column per edit, batch after batch: `keys.<layer>` (history; with a text
/// budget T k is stored below k), `curvature.{keys,gradients}.<layer>` (crispedit), `texts.{ids,sizes}` (revisit).
/// Other tensors of methods: `lost.<layer>` (error feedback), `norm_anchor.<layer>`, `auto.<option>.<layer>`,
/// `normaliser.<in>x<out>.{count,mean,squares,scatter}`.
struct EditorState {
  std::map<std::string, Tensor> tensors;
  int64_t edits = 0;  ///< requests edited so far
};

/// Identifies the owner of a state file. The file fits no other method or model, and only the files it was written
/// with.
struct StateOwner {
  std::string method;
  std::string base_hash;    ///< Checkpoint::content_hash of the unedited model
  std::string beside = {};  ///< a hash of the files that belong to this file; empty: there are none
};

/// Checks a file by its facts method, base_hash and beside. Throws: ConfigError if the file belongs to another method
/// or model; CheckpointError if it was not written with the files that `owner` names. Files without a hash pass this
/// last check.
void check_owner(const SealedFile& file, const StateOwner& owner);

/// Reads a state that an earlier version wrote: a sealed file with every tensor under its name; facts: format
/// lancet-state-2, method, base_hash, beside, edits. A file of format lancet-state-1, which has no hash, is read with a
/// warning. Throws: as check_owner(); CheckpointError if the file is damaged or not a state.
EditorState load_state(const std::filesystem::path& path, const StateOwner& owner);

/// Returns the columns of the state under `name` ([F, M] f64); undefined if there are none.
Tensor columns_of(const EditorState& state, const std::string& name);

/// Concatenates columns, those of `earlier_FM` first. Either may be undefined.
Tensor joined_columns(const Tensor& earlier_FM, const Tensor& fresh_FN);

/// Appends `columns_FN` to the columns of the state under `name`. At most 2 F columns are kept. If there are more, they
/// are replaced by F columns with the same H H^T, since a history of keys is used only through this product.
void append_columns(EditorState& state, const std::string& name, const Tensor& columns_FN);

/// The difference between a state and an earlier one.
struct StateStep {
  std::map<std::string, Tensor> appended = {};  ///< columns to append to those of the earlier state
  std::map<std::string, Tensor> replaced = {};  ///< tensors that are new or different
  int64_t edits = 0;                            ///< requests between the two states
};

/// Returns what `after` has in addition to `before`. `after` must keep every name of `before`. Tensors that are taken
/// whole are shared, not copied.
StateStep step_between(const EditorState& before, const EditorState& after);
/// Turns `state` into the state after the step, bit by bit. Throws: CheckpointError if the step does not fit the state.
void advance(EditorState& state, const StateStep& step);

/// A weight's changes, in the order in which they were applied.
struct WeightChanges {
  WeightId id;
  std::vector<WeightDelta> deltas;
};

/// Returns whether a change is of low rank, with columns that belong to requests; a dense change belongs to all
/// requests together.
bool has_columns(const std::vector<WeightChanges>& changes);

struct StreamState {
  EditorState editor;
  std::vector<WeightChanges> changes;    ///< weights in the order of their first change
  std::vector<std::string> request_ids;  ///< the request of each column, the same for every weight's low-rank changes
};

/// What is known of a stream without its tensors.
struct StreamFacts {
  StateOwner owner;
  std::string editor;  ///< the editor's options, as YAML
};

/// Reads the facts of a stream from the headers of its files alone. `beside` of the owner is empty if the files are of
/// an earlier version. Throws: CheckpointError if the folder holds no stream or if its header is damaged.
StreamFacts read_stream_facts(const std::filesystem::path& folder);

/// Reads a stream. Throws: as load_state(); CheckpointError if a file is damaged, and if a changed weight is not in the
/// model or has another shape.
StreamState load_stream(const std::filesystem::path& folder, const StateOwner& owner, const ModelConfig& config);

/// Collective. Copies root's stream to every rank, bit by bit.
void share_stream(StreamState& stream, const ModelConfig& config, Communicator& communicator);

/// Returns the changes of a transaction so far.
std::vector<WeightChanges> changes_of(std::span<const WeightTransaction::Entry> entries);

/// Applies the changes to a transaction that has none, each on its weight's device.
void restore_changes(const std::vector<WeightChanges>& changes, const CausalLM& model, WeightTransaction& transaction);

// Stores changes of weights as the tensors of a file.

/// Returns tensors `NAME/0/left`, `NAME/0/right` or `NAME/0/full`, `NAME/1/...` for each weight NAME, of shapes [d_out,
/// r], [r, d_in] or [d_out, d_in], each in its own type.
NamedTensors to_named(const std::vector<WeightChanges>& changes, const ModelConfig& config);

/// Inverts to_named(). Throws: CheckpointError for tensors that to_named() cannot have made.
std::vector<WeightChanges> to_changes(const NamedTensors& named, const ModelConfig& config);

}  // namespace lancet
