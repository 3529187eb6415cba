// Merges several histories of one base: adds their changes, or solves once for all their edits.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// Checks that the histories can be merged. Throws: ConfigError, which says what differs and what to do, if the
/// histories are not of one base (weights, config, tokenizer), if one has a change that a method made after its last
/// batch (EditHistory::finish, which belongs to all its edits together), or if an id is in several histories.
void check_mergeable(std::span<const EditHistory* const> histories);

struct MergedHistory {
  EditHistory history;
  std::string approximation = {};  ///< how it differs from each of the histories; empty: not at all
};

/// Merges by adding: takes all batches, those of the first history first, with their changes, systems and reports
/// unchanged. Hashes of weights are kept only for the first history's batches. If all batches are of one method, the
/// state is continued: the histories of keys are concatenated, and values that were measured once are the first
/// history's. With several methods, the state of each later history is left out. Measures are left out, since they
/// belong to other weights. Throws: as check_mergeable().
MergedHistory add_histories(std::span<const EditHistory* const> histories, const ModelConfig& config);

/// The effect of the other histories' changes on an edit's keys.
struct Interference {
  size_t history = 0, batch = 0, edit = 0;
  std::string id = {};
  /// ||Delta k|| / ||r|| at the weight where it is largest. Delta is the sum of all other histories' changes of the
  /// weight, k is the edit's key in its last change there, and r is the whole change of the value at k that its batch
  /// asked for (asked_in_all).
  double largest = 0;
  int64_t layer = 0;  ///< layer of that weight
};

/// Measures the interference for each edit that has keys (methods that keep systems), batch by batch.
std::vector<Interference> interference(std::span<const EditHistory* const> histories);

/// The keys of one weight in a whole history, and the changes of value asked for at them: one column for each key of
/// each batch.
struct AskedKeys {
  WeightId id = {};
  /// For each key: its batch, and the edits of the batch that share the key.
  std::vector<std::pair<size_t, std::vector<int64_t>>> edits = {};
  Tensor keys_FN = {};  ///< keys as they were in the batch's last change of the weight that had the key
  /// How much the value at the key should differ from the unedited weight's after that change: its residual r, plus the
  /// effect of all earlier changes at the key, (sum of Delta) k + r. With one batch and one change of each weight these
  /// are the residuals themselves.
  Tensor asked_DN = {};
};

/// Returns the keys of each weight with systems, in the order of the weights. Throws: ConfigError, with the advice to
/// add the changes instead, if a batch has changes but no systems.
std::vector<AskedKeys> asked_in_all(const EditHistory& history);

/// The solution of one weight for all keys.
struct JointSolution {
  LowRankDelta delta = {};      ///< R U, a column for each key, on the host in f64
  Tensor inverse_gram_NN = {};  ///< as SolvedSystem::inverse_gram_NN
};

struct JointOptions {
  /// Solves the weight with the factor of the statistics (solve_ridge and its variants), without a history of keys.
  std::function<JointSolution(WeightId id, const Tensor& keys_FN, const Tensor& residuals_DN)> solve = {};
  std::set<std::string> drop = {};  ///< ids of edits that are left out because they were superseded
};

struct JointBatch {
  BatchEntry entry = {};  ///< setting 0, without a report; `when` is now
  EditedBatch batch = {};
  std::string assumes = {};
};

/// Makes one batch of all edits of all histories. Each weight is solved once for all its keys and the changes asked for
/// at them. This preserves the edits better than adding, since the solve sees all of them. It assumes that a key equals
/// the key in its batch's last change of the weight; that lower layers, and layers that only another history edited,
/// contribute what they contributed before; and that effects of a history's later batches on its earlier edits were
/// unwanted. With one batch and one change of each weight it is the solve of all requests together. Keys of equal edits
/// are not joined. The state has the histories' keys as in add_histories(). Throws: as check_mergeable() and
/// asked_in_all(); ConfigError for ids in `drop` that no history has, if no edit is left, for an edit that shares its
/// key with a dropped one, and for changes that were trained beside solved ones.
JointBatch solve_jointly(std::span<const EditHistory* const> histories, const JointOptions& options);

}  // namespace lancet
