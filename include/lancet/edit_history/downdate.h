// Taking edits out of a history by what is stored of it: their columns leave the solves of their batches, and what is
// left is what those solves give without them. No model is run, and no covariance is needed unless a history of keys
// is.
//
// Of a change Delta = R U with U = G^-1 K^T A^-1, G = K^T A^-1 K + mu I, V = G^-1 (deltas/solved_system.h) the keys J
// leave, and the keys I stay: (G_II)^-1 = V_II - V_IJ V_JJ^-1 V_JI (block inversion), and since U = V (K^T A^-1),
// U'_I = U_I - V_IJ V_JJ^-1 U_J. R's columns stay as they are.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// A batch with fewer edits.
struct ReducedBatch {
  EditedBatch batch = {};  ///< its state's step is the whole one's
  /// How far U' may be off by rounding, relative to its norm: from what U K = I - V and V = V^T are violated by, times
  /// 1 / lambda_min(V_JJ). The largest of all systems.
  double error = 0;
};

/// More than this is refused.
inline constexpr double kLargestDowndateError = 1e-6;

/// The batch without the edits at `places` of `entry`, of which some stay. Throws: ConfigError, which says to run the
/// rest again (--mode replay), for changes that nothing is stored of (dense ones, those that were filtered after their
/// solve, methods without systems) and for a key that an edit shares with one that stays; NumericError when the bound
/// is above kLargestDowndateError; CheckpointError when systems, columns and changes do not fit each other.
ReducedBatch without_edits(const EditedBatch& batch, const BatchEntry& entry, const std::set<int64_t>& places);

/// A batch's report without some edits; `kept`: places of those that stay, ascending.
using ReportWithout = std::function<nlohmann::ordered_json(const BatchEntry& batch, const std::vector<int64_t>& kept)>;

/// The entry without the edits at `places`: columns are renumbered, and all hashes are empty. The report is
/// what `report` makes of it; without one it is null.
BatchEntry without_edits(const BatchEntry& entry, const std::set<int64_t>& places, const ReportWithout& report);

/// A change with a system, to be solved again with the keys of other batches as its history.
struct SolveAgain {
  const BatchEntry& entry;
  const SolvedSystem& system;
  Tensor history_FM = {};  ///< undefined: none
};

/// What of a downdate is not in the history.
struct DowndateHelp {
  /// U for the system's keys, [N, F] (LowRankDelta::right_RI), as the method solves for it (Editor::solve_given).
  /// Empty: what the method needs for it is not at hand.
  std::function<Tensor(const SolveAgain& problem)> solve = {};
  ReportWithout report = {};
};

/// What comes after the first `keeps` batches in place of what was there. Batches of which nothing is left are absent.
struct Downdated {
  size_t keeps = 0;
  std::vector<BatchEntry> entries = {};
  std::vector<EditedBatch> batches = {};
  /// Text for UndoEntry::approximation: in what it is not as if the edits had never been; empty: in nothing.
  std::string approximation = {};
  double error = 0;  ///< like ReducedBatch's
};

/// Takes the edits of those ids out. A history of keys ("keys.LAYER" of the state) loses the columns of their keys, and
/// later batches that were solved with it are solved again. What the method did after the last batch
/// (EditHistory::finish) is the caller's to do again. Throws: as the first; ConfigError also for ids that do not stand,
/// and, with the advice to replay, for a history that was compressed over the edits' columns (append_columns), later
/// batches that go by running numbers of earlier ones (UltraEdit), and later batches to be solved again without
/// `help.solve`.
Downdated without_edits(const EditHistory& history, const std::set<std::string>& ids, const DowndateHelp& help);

}  // namespace lancet
