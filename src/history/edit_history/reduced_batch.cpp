// Computes one batch without some of its edits.
#include <torch/types.h>

#include <algorithm>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/edit_history/downdate.h"
#include "reduced_system.h"
#include "solved_rows.h"

namespace lancet {
namespace {

std::vector<int64_t> places_kept(size_t n, const std::set<int64_t>& dropped) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < static_cast<int64_t>(n); ++i)
    if (!dropped.contains(i)) kept.push_back(i);
  return kept;
}

/// Returns each edit's index among the remaining edits; -1 for dropped edits.
std::vector<int64_t> new_places(size_t n, const std::set<int64_t>& dropped) {
  std::vector<int64_t> places(n, -1);
  int64_t next = 0;
  for (const int64_t place : places_kept(n, dropped)) places[static_cast<size_t>(place)] = next++;
  return places;
}

/// Which keys of the system stay, and which are dropped.
struct KeyParts {
  std::vector<int64_t> kept = {}, dropped = {};

  KeyParts(const SolvedSystem& system, const BatchEntry& entry, const std::set<int64_t>& places) {
    for (size_t n = 0; n < system.edits.size(); ++n) {
      const auto is_dropped = [&](int64_t edit) { return places.contains(edit); };
      const std::vector<int64_t>& edits = system.edits[n];
      const auto n_dropped = std::ranges::count_if(edits, is_dropped);
      if (n_dropped > 0 && n_dropped < static_cast<int64_t>(edits.size())) {
        const auto id = [&](int64_t edit) { return entry.edits[static_cast<size_t>(edit)].request.id; };
        const int64_t goes = *std::ranges::find_if(edits, is_dropped),
                      stays = *std::ranges::find_if_not(edits, is_dropped);
        throw ConfigError(cat("edit ", id(goes), ": it has one key with edit ", id(stays),
                              ", which stays, and their targets were joined: use --mode replay"));
      }
      (n_dropped > 0 ? dropped : kept).push_back(static_cast<int64_t>(n));
    }
  }
};

class Reduction {
 public:
  Reduction(const EditedBatch& batch, const BatchEntry& entry, const std::set<int64_t>& places)
      : batch_(batch), entry_(entry), places_(places), new_places_(new_places(entry.edits.size(), places)) {}

  ReducedBatch run() {
    ReducedBatch reduced{.batch = {.state = batch_.state}};
    for (const WeightChanges& weight : batch_.changes) {
      WeightChanges fewer{weight.id, {}};
      size_t column = 0;
      for (size_t i = 0; i < weight.deltas.size(); ++i) fewer.deltas.emplace_back(without(weight, i, column, reduced));
      if (column != entry_.columns.size())
        throw CheckpointError(cat("expected changes of ", entry_.columns.size(), " columns in all, got ", column));
      reduced.batch.changes.push_back(std::move(fewer));
    }
    std::ranges::stable_sort(reduced.batch.systems, {}, [&](const SolvedSystem& system) {
      return find_system(batch_, system.id, static_cast<size_t>(system.change)) - batch_.systems.data();
    });
    return reduced;
  }

 private:
  /// `column`: index of the change's first column in entry_.columns. It is advanced past the change's last column.
  LowRankDelta without(const WeightChanges& weight, size_t change, size_t& column, ReducedBatch& reduced) const {
    const LowRankDelta& delta = low_rank(weight, change);
    const std::vector<int64_t> edits = edits_of_columns(entry_, column, delta);
    column += edits.size();
    std::vector<int64_t> columns;
    for (size_t i = 0; i < edits.size(); ++i)
      if (!places_.contains(edits[i])) columns.push_back(static_cast<int64_t>(i));
    const Tensor kept = torch::tensor(columns, torch::kLong);
    LowRankDelta fewer{delta.left_OR.index_select(1, kept), delta.right_RI.index_select(0, kept)};
    const SolvedSystem* system = find_system(batch_, weight.id, change);
    if (system == nullptr) {
      // the change is zero, but it still has columns
      if (is_zero(delta)) return fewer;
      throw ConfigError(cat(where(weight, change), ": the method keeps nothing of what it was solved from: an edit ",
                            "cannot leave its batch; use --mode replay"));
    }
    std::vector<int64_t> edits_kept;
    for (const int64_t place : columns) edits_kept.push_back(edits[static_cast<size_t>(place)]);
    reduce(*system, delta, {edits, edits_kept}, {fewer, reduced}, where(weight, change));
    return fewer;
  }

  struct Columns {
    const std::vector<int64_t>&all, &kept;
  };
  struct Results {
    LowRankDelta& delta;
    ReducedBatch& batch;
  };

  void reduce(const SolvedSystem& system, const LowRankDelta& delta, const Columns& columns, const Results& results,
              const std::string& where) const {
    const Tensor rows_NF = rows_of_keys(system, delta, columns.all, where);
    const KeyParts parts(system, entry_, places_);
    const Tensor kept_I = torch::tensor(parts.kept, torch::kLong);
    SolvedSystem fewer{.id = system.id, .change = system.change};
    for (const int64_t key : parts.kept) {
      std::vector<int64_t>& edits = fewer.edits.emplace_back();
      for (const int64_t edit : system.edits[static_cast<size_t>(key)])
        edits.push_back(new_places_[static_cast<size_t>(edit)]);
    }
    fewer.keys_FN = system.keys_FN.index_select(1, kept_I);
    fewer.residuals_DN = system.residuals_DN.index_select(1, kept_I);
    if (parts.kept.empty()) {
      results.delta.right_RI = torch::zeros_like(results.delta.right_RI);
      return;  // only columns of edits without a key here: there is no system
    }
    Tensor right_IF = rows_NF.index_select(0, kept_I);
    fewer.inverse_gram_NN = system.inverse_gram_NN;
    if (!parts.dropped.empty()) {
      const ReducedSystem reduced = reduce_system(rows_NF, system.keys_FN.to(torch::kDouble), system.inverse_gram_NN,
                                                  parts.kept, parts.dropped, where);
      right_IF = reduced.right_IF;
      if (system.inverse_gram_NN.defined()) fewer.inverse_gram_NN = reduced.inverse_gram_II;
      results.batch.error = std::max(results.batch.error, reduced.error);
    }
    std::vector<int64_t> kept_edits;
    for (const int64_t edit : columns.kept) kept_edits.push_back(new_places_[static_cast<size_t>(edit)]);
    results.delta.right_RI = rows_of_columns(fewer, right_IF, kept_edits, results.delta.right_RI);
    results.batch.batch.systems.push_back(std::move(fewer));
  }

  const EditedBatch& batch_;
  const BatchEntry& entry_;
  const std::set<int64_t>& places_;
  std::vector<int64_t> new_places_;
};

}  // namespace

ReducedBatch without_edits(const EditedBatch& batch, const BatchEntry& entry, const std::set<int64_t>& places) {
  const torch::NoGradGuard no_grad;
  if (places.empty()) return {batch, 0};
  if (*places.begin() < 0 || *places.rbegin() >= static_cast<int64_t>(entry.edits.size()) ||
      places.size() == entry.edits.size())
    throw std::logic_error("without_edits: expected places of some of the batch's edits, and not of all");
  if (entry.columns.empty())
    throw ConfigError("the changes are of all edits of their batch together: one cannot leave it; use --mode replay");
  return Reduction(batch, entry, places).run();
}

BatchEntry without_edits(const BatchEntry& entry, const std::set<int64_t>& places, const ReportWithout& report) {
  const std::vector<int64_t> kept = places_kept(entry.edits.size(), places);
  const std::vector<int64_t> renumbered = new_places(entry.edits.size(), places);
  BatchEntry fewer{.setting = entry.setting, .when = entry.when};
  for (const int64_t place : kept) fewer.edits.push_back(entry.edits[static_cast<size_t>(place)]);
  for (const int64_t column : entry.columns)
    if (!places.contains(column)) fewer.columns.push_back(renumbered[static_cast<size_t>(column)]);
  if (report) fewer.report = report(entry, kept);
  return fewer;
}

}  // namespace lancet
