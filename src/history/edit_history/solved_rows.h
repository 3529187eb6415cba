// Relates a batch's changes, their columns, and the systems from which they were solved.
#pragma once

#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// Returns "layer 3, change 0".
std::string where(const WeightChanges& weight, size_t change);

/// Throws: ConfigError with the advice to replay, if the change is dense.
const LowRankDelta& low_rank(const WeightChanges& weight, size_t change);

/// Returns the edits of a change's columns, which begin at index `first` of entry.columns. Throws: CheckpointError if
/// entry.columns is too short.
std::vector<int64_t> edits_of_columns(const BatchEntry& entry, size_t first, const LowRankDelta& delta);

/// Returns null if the change has no system.
const SolvedSystem* find_system(const EditedBatch& batch, WeightId id, size_t change);

bool is_zero(const LowRankDelta& delta);

/// Returns U of the change, with a row for each key of the system, f64. Throws: CheckpointError if a key has no column;
/// ConfigError if the columns do not add up to the key's residual, which means that the change was filtered after its
/// solve.
Tensor rows_of_keys(const SolvedSystem& system, const LowRankDelta& delta, const std::vector<int64_t>& edits,
                    const std::string& where);

/// The inverse of rows_of_keys(): returns `right_RI`, in which the rows of columns whose edit has a key are replaced by
/// those of U.
Tensor rows_of_columns(const SolvedSystem& system, const Tensor& right_NF, const std::vector<int64_t>& edits,
                       const Tensor& right_RI);

}  // namespace lancet
