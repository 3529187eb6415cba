// Removes edits from a history by the data that is stored of it. The columns of the edits leave the solves of their
// batches, and the result is what those solves give without them. No model is run. A covariance is needed only if the
// method keeps a history of keys.
//
// A change is Delta = R U with U = G^-1 K^T A^-1, G = K^T A^-1 K + mu I, V = G^-1 (deltas/solved_system.h). If the keys
// J leave and the keys I stay, then (G_II)^-1 = V_II - V_IJ V_JJ^-1 V_JI (block inversion), and since U = V (K^T A^-1),
// U'_I = U_I - V_IJ V_JJ^-1 U_J. The columns of R stay as they are.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// A batch with fewer edits.
struct ReducedBatch {
  EditedBatch batch = {};  ///< its state step is that of the whole batch
  /// A bound on the rounding error of U', relative to its norm: how far U K = I - V and V = V^T are violated, times 1 /
  /// lambda_min(V_JJ). The largest over all systems.
  double error = 0;
};

/// A downdate with a larger error is refused.
inline constexpr double kLargestDowndateError = 1e-6;

/// Returns the batch without the edits at `places` of `entry`; at least one edit must stay. Throws: ConfigError, with
/// the advice to run the rest again (--mode replay), for changes without stored systems (dense changes, changes that
/// were filtered after their solve, methods without systems) and for a key that a removed edit shares with one that
/// stays; NumericError if the error bound exceeds kLargestDowndateError; CheckpointError if systems, columns and
/// changes do not fit each other.
ReducedBatch without_edits(const EditedBatch& batch, const BatchEntry& entry, const std::set<int64_t>& places);

/// Returns a batch's report without some edits. `kept`: the places of the edits that stay, ascending.
using ReportWithout = std::function<nlohmann::ordered_json(const BatchEntry& batch, const std::vector<int64_t>& kept)>;

/// Returns the entry without the edits at `places`. Columns are renumbered, and all hashes are empty. `report` makes
/// the report; if it is empty, the report is null.
BatchEntry without_edits(const BatchEntry& entry, const std::set<int64_t>& places, const ReportWithout& report);

/// A change with a system that must be solved again, with the keys of other batches as its history.
struct SolveAgain {
  const BatchEntry& entry;
  const SolvedSystem& system;
  Tensor history_FM = {};  ///< undefined: none
};

/// What a downdate needs that the history does not hold.
struct DowndateHelp {
  /// Returns U for the system's keys, [N, F] (LowRankDelta::right_RI), as the method solves for it
  /// (Editor::solve_given). Empty: what the method needs for the solve is not available.
  std::function<Tensor(const SolveAgain& problem)> solve = {};
  ReportWithout report = {};
};

/// What replaces the batches after the first `keeps`. Batches that lost all their edits are absent.
struct Downdated {
  size_t keeps = 0;
  std::vector<BatchEntry> entries = {};
  std::vector<EditedBatch> batches = {};
  /// Text for UndoEntry::approximation: how the result differs from a history without the edits; empty: not at all.
  std::string approximation = {};
  double error = 0;  ///< largest ReducedBatch::error
};

/// Removes the edits with these ids. A history of keys ("keys.LAYER" of the state) loses the columns of their keys, and
/// later batches that were solved with it are solved again. The caller must repeat what the method did after the last
/// batch (EditHistory::finish). Throws: as the first; ConfigError also for ids that are not in the history, and, with
/// the advice to replay, for a history that was compressed over the edits' columns (append_columns), for later batches
/// that depend on running statistics of earlier ones (UltraEdit), and for later batches that must be solved again if
/// `help.solve` is empty.
Downdated without_edits(const EditHistory& history, const std::set<std::string>& ids, const DowndateHelp& help);

}  // namespace lancet
