// Solves once for the edits of several histories.
#include <torch/types.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/edit_history/merge.h"
#include "merged_state.h"
#include "solved_rows.h"

namespace lancet {
namespace {

/// The remaining edits of all histories, by history, batch and index.
class JointEdits {
 public:
  JointEdits(std::span<const EditHistory* const> histories, std::set<std::string> drop) {
    for (size_t h = 0; h < histories.size(); ++h) {
      const std::vector<BatchEntry>& entries = histories[h]->journal().batches();
      for (size_t b = 0; b < entries.size(); ++b)
        for (size_t e = 0; e < entries[b].edits.size(); ++e)
          take(entries[b].edits[e], {h, b, static_cast<int64_t>(e)}, drop);
    }
    if (!drop.empty()) throw ConfigError(cat("drop: edit ", *drop.begin(), ": none of this id stands"));
    if (records_.empty()) throw ConfigError("drop: nothing is left of the histories");
  }

  const std::vector<EditRecord>& records() const { return records_; }

  /// Returns the indices of the edits in the joint batch; empty if all were dropped. Throws: ConfigError if only some
  /// were dropped.
  std::vector<int64_t> places(size_t history, size_t batch, const std::vector<int64_t>& edits) const {
    std::vector<int64_t> places;
    for (const int64_t edit : edits)
      if (const auto found = places_.find({history, batch, edit}); found != places_.end())
        places.push_back(found->second);
    if (!places.empty() && places.size() != edits.size())
      throw ConfigError(cat("edit ", records_[static_cast<size_t>(places.front())].request.id,
                            ": it has one key with an edit that is dropped, and their targets were joined: drop both, ",
                            "or neither"));
    return places;
  }

 private:
  using Place = std::tuple<size_t, size_t, int64_t>;

  void take(const EditRecord& record, const Place& place, std::set<std::string>& drop) {
    if (drop.erase(record.request.id) > 0) return;
    places_[place] = static_cast<int64_t>(records_.size());
    records_.push_back(record);
  }

  std::map<Place, int64_t> places_;
  std::vector<EditRecord> records_;
};

/// The remaining keys of one weight.
struct JointKeys {
  std::vector<std::vector<int64_t>> edits = {};
  std::vector<Tensor> keys_FN = {}, asked_DN = {};

  void add(const AskedKeys& asked, size_t history, const JointEdits& all) {
    std::vector<int64_t> kept;
    for (size_t n = 0; n < asked.edits.size(); ++n) {
      std::vector<int64_t> places = all.places(history, asked.edits[n].first, asked.edits[n].second);
      if (places.empty()) continue;
      edits.push_back(std::move(places));
      kept.push_back(static_cast<int64_t>(n));
    }
    const Tensor select = torch::tensor(kept, torch::kLong);
    keys_FN.push_back(asked.keys_FN.index_select(1, select));
    asked_DN.push_back(asked.asked_DN.index_select(1, select));
  }
};

/// Returns a change with a column for each edit. A shared key is divided equally among its edits; an edit without a key
/// gets zeros.
LowRankDelta by_edit(const SolvedSystem& system, const LowRankDelta& solved, int64_t n_edits) {
  const Tensor left_DR = torch::zeros({solved.left_OR.size(0), n_edits}, torch::kDouble);
  std::vector<int64_t> edits(static_cast<size_t>(n_edits));
  for (int64_t i = 0; i < n_edits; ++i) edits[static_cast<size_t>(i)] = i;
  for (size_t n = 0; n < system.edits.size(); ++n)
    for (const int64_t edit : system.edits[n])
      left_DR.select(1, edit).copy_(solved.left_OR.select(1, static_cast<int64_t>(n)) /
                                    static_cast<double>(system.edits[n].size()));
  const Tensor right_RF = torch::zeros({n_edits, solved.right_RI.size(1)}, torch::kDouble);
  return {left_DR, rows_of_columns(system, solved.right_RI, edits, right_RF)};
}

/// Returns all steps as one, with the remaining edits.
StateStep joint_step(std::span<const EditHistory* const> histories, int64_t n_edits) {
  EditorState state;
  MergedState merged;
  if (has_one_method(histories))
    for (const EditHistory* history : histories) {
      merged.begin_history();
      for (const EditedBatch& batch : history->batches()) advance(state, merged.next(batch.state));
    }
  return {.replaced = state.tensors, .edits = n_edits};
}

/// Refuses a history with edits that were trained on whole texts: a joint solve gives values at keys, and these edits
/// have none.
void refuse_trained(const EditHistory& history) {
  for (size_t b = 0; b < history.batches().size(); ++b) {
    const EditedBatch& batch = history.batches()[b];
    for (const WeightChanges& weight : batch.changes)
      for (size_t i = 0; i < weight.deltas.size(); ++i)
        if (std::holds_alternative<DenseDelta>(weight.deltas[i]) && find_system(batch, weight.id, i) == nullptr)
          throw ConfigError(cat("batch ", b + 1, ", ", where(weight, i), ": it was trained, not solved (repair), and ",
                                "would be lost in a joint solve; add the changes instead"));
  }
}

}  // namespace

JointBatch solve_jointly(std::span<const EditHistory* const> histories, const JointOptions& options) {
  const torch::NoGradGuard no_grad;
  check_mergeable(histories);
  const JointEdits edits(histories, options.drop);
  const auto n_edits = static_cast<int64_t>(edits.records().size());
  std::map<WeightId, JointKeys> weights;
  bool has_several = false;
  for (size_t h = 0; h < histories.size(); ++h) {
    has_several = has_several || histories[h]->batches().size() > 1;
    for (const AskedKeys& asked : asked_in_all(*histories[h])) weights[asked.id].add(asked, h, edits);
    refuse_trained(*histories[h]);
  }
  JointBatch joint;
  joint.entry.when = utc_now();
  joint.entry.edits = edits.records();
  for (int64_t i = 0; i < n_edits; ++i) joint.entry.columns.push_back(i);
  for (auto& [id, keys] : weights) {
    if (keys.edits.empty()) continue;
    SolvedSystem system{.id = id,
                        .edits = keys.edits,
                        .keys_FN = torch::cat(keys.keys_FN, 1),
                        .residuals_DN = torch::cat(keys.asked_DN, 1)};
    const JointSolution solution = options.solve(id, system.keys_FN, system.residuals_DN);
    system.inverse_gram_NN = solution.inverse_gram_NN;
    joint.batch.changes.push_back({id, {by_edit(system, solution.delta, n_edits)}});
    joint.batch.systems.push_back(std::move(system));
  }
  joint.batch.state = joint_step(histories, n_edits);
  joint.assumes = "keys are what they were when they were edited, and lower layers bring what they brought";
  if (has_several) joint.assumes += "; what later batches did to the edits of earlier ones was not wanted";
  return joint;
}

}  // namespace lancet
