#include "solved_rows.h"

#include <torch/types.h>

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// A tolerance, because residuals are stored in f64 but changes perhaps in f32.
constexpr double kSameResidual = 1e-5;

}  // namespace

std::string where(const WeightChanges& weight, size_t change) {
  return cat("layer ", weight.id.layer, ", change ", change);
}

const LowRankDelta& low_rank(const WeightChanges& weight, size_t change) {
  const auto* low_rank = std::get_if<LowRankDelta>(&weight.deltas[change]);
  if (low_rank == nullptr)
    throw ConfigError(cat(where(weight, change), ": a dense change, of all edits of its batch together: one cannot ",
                          "leave it; use --mode replay"));
  return *low_rank;
}

std::vector<int64_t> edits_of_columns(const BatchEntry& entry, size_t first, const LowRankDelta& delta) {
  const auto n = static_cast<size_t>(delta.right_RI.size(0));
  if (first + n > entry.columns.size())
    throw CheckpointError(
        cat("expected changes of ", entry.columns.size(), " columns in all, got ", first + n, " or more"));
  const auto begin = entry.columns.begin() + static_cast<int64_t>(first);
  return {begin, begin + static_cast<int64_t>(n)};
}

const SolvedSystem* find_system(const EditedBatch& batch, WeightId id, size_t change) {
  const auto found = std::ranges::find_if(batch.systems, [&](const SolvedSystem& system) {
    return system.id == id && system.change == static_cast<int64_t>(change);
  });
  return found == batch.systems.end() ? nullptr : &*found;
}

bool is_zero(const LowRankDelta& delta) {
  return (delta.left_OR == 0).all().item<bool>() || (delta.right_RI == 0).all().item<bool>();
}

Tensor rows_of_keys(const SolvedSystem& system, const LowRankDelta& delta, const std::vector<int64_t>& edits,
                    const std::string& where) {
  std::vector<int64_t> rows;
  const Tensor left_DN = torch::zeros_like(system.residuals_DN, torch::kDouble);
  for (size_t n = 0; n < system.edits.size(); ++n) {
    std::vector<int64_t> columns;
    for (size_t i = 0; i < edits.size(); ++i)
      if (std::ranges::find(system.edits[n], edits[i]) != system.edits[n].end())
        columns.push_back(static_cast<int64_t>(i));
    if (columns.empty()) throw CheckpointError(cat(where, ": key ", n, ": expected a column of its edits, got none"));
    rows.push_back(columns.front());
    left_DN.select(1, static_cast<int64_t>(n))
        .copy_(delta.left_OR.index_select(1, torch::tensor(columns, torch::kLong)).to(torch::kDouble).sum(1));
  }
  const double off = (left_DN - system.residuals_DN).norm().item<double>();
  if (!(off <= kSameResidual * system.residuals_DN.norm().item<double>()))
    throw ConfigError(cat(where, ": the change is not the one that was solved: it was changed after it, all edits ",
                          "together; use --mode replay"));
  return delta.right_RI.index_select(0, torch::tensor(rows, torch::kLong)).to(torch::kDouble);
}

Tensor rows_of_columns(const SolvedSystem& system, const Tensor& right_NF, const std::vector<int64_t>& edits,
                       const Tensor& right_RI) {
  const Tensor rows_RF = right_RI.clone();
  for (size_t n = 0; n < system.edits.size(); ++n)
    for (size_t i = 0; i < edits.size(); ++i)
      if (std::ranges::find(system.edits[n], edits[i]) != system.edits[n].end())
        rows_RF.select(0, static_cast<int64_t>(i)).copy_(right_NF.select(0, static_cast<int64_t>(n)));
  return rows_RF;
}

}  // namespace lancet
