// What a method carries from one batch of edits to the next, as data: a stream of edits can stop, and go on in another
// process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "lancet/checkpoint/sealed_file.h"
#include "lancet/runtime/tensor.h"

namespace lancet {

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

}  // namespace lancet
