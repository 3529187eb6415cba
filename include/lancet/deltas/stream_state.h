// The state of a stream of edits: the exact changes so far, and what the method carries on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

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
  std::vector<WeightChanges> changes;  ///< weights in the order of their first change
};

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
