// Several histories of one base as one: their changes side by side, or one solve for all their edits.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// Throws: ConfigError naming what differs, when the histories are not of one base (weights, config, tokenizer), when
/// one has what a method did after its last batch (EditHistory::finish, which is of all its edits together), or when
/// an id stands in several: the messages say what to do.
void check_mergeable(std::span<const EditHistory* const> histories);

struct MergedHistory {
  EditHistory history;
  std::string approximation = {};  ///< how it differs from each of them; empty: not at all
};

/// Adding: all batches, those of the first history first, with their changes, systems and reports as they are; hashes
/// of weights are kept of the first one's batches alone. The state goes on where all batches are of one method: the
/// histories of keys one after the other, what was measured once as the first history has it. Of several methods each
/// later history's state is left out. Measures are left out: they were of other weights. Throws: as check_mergeable().
MergedHistory add_histories(std::span<const EditHistory* const> histories, const ModelConfig& config);

/// What the others' changes do to an edit's keys.
struct Interference {
  size_t history = 0, batch = 0, edit = 0;
  std::string id = {};
  /// ||Delta k|| / ||r|| at the weight where it is largest: Delta the sum of all other histories' changes of the
  /// weight, k the edit's key in its last change there, r the change of the value at k that its batch asked for in all
  /// (asked_in_all).
  double largest = 0;
  int64_t layer = 0;  ///< layer of that weight
};

/// Measures the interference of each edit that has keys (methods that keep systems), batch by batch.
std::vector<Interference> interference(std::span<const EditHistory* const> histories);

/// A weight's keys of a whole history, and what was asked of them. A column for each key of each batch.
struct AskedKeys {
  WeightId id = {};
  /// Each key's batch, and the edits there that share it.
  std::vector<std::pair<size_t, std::vector<int64_t>>> edits = {};
  Tensor keys_FN = {};  ///< keys in the batch's last change of the weight that had the key
  /// How much the value at the key was to differ from the unedited weight's after that change: its residual, and what
  /// all changes before it did at the key, (sum of Delta) k + r. With one change of each weight, and one batch, the
  /// residuals as they are.
  Tensor asked_DN = {};
};

/// Returns the keys of each weight with systems, in the order of the weights. Throws: ConfigError, with the advice to
/// add the changes instead, when a batch has changes and no systems.
std::vector<AskedKeys> asked_in_all(const EditHistory& history);

/// The solution of one weight for all keys.
struct JointSolution {
  LowRankDelta delta = {};      ///< R U, a column for each key, on the host in f64
  Tensor inverse_gram_NN = {};  ///< like SolvedSystem's
};

struct JointOptions {
  /// Solves the weight with the statistics' factor (solve_ridge and its kin), without a history of keys.
  std::function<JointSolution(WeightId id, const Tensor& keys_FN, const Tensor& residuals_DN)> solve = {};
  std::set<std::string> drop = {};  ///< ids of edits that stay out: superseded ones
};

struct JointBatch {
  BatchEntry entry = {};  ///< setting 0, no report; `when` is now
  EditedBatch batch = {};
  std::string assumes = {};
};

/// One batch of all edits of all histories, each weight solved once for all its keys and what was asked of them. It
/// keeps both better than adding does, since the solve sees both. Assumes that a key is what it was in its batch's last
/// change of the weight; that lower layers, and layers that another history edited alone, bring what they brought; and
/// that what one history's later batches did to its earlier edits was not wanted. With one batch and one change of each
/// weight it is the solve of all requests together. Keys of equal edits are not joined. The state has the histories'
/// keys as add_histories() has them. Throws: as check_mergeable() and asked_in_all(); ConfigError for ids in `drop`
/// that no history has, when nothing is left, for an edit that shares its key with a dropped one, and for changes that
/// were trained beside solved ones.
JointBatch solve_jointly(std::span<const EditHistory* const> histories, const JointOptions& options);

}  // namespace lancet
