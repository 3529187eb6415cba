// How a batch's changes, their columns and the systems that they were solved from belong together.
#pragma once

#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// "layer 3, change 0".
std::string where(const WeightChanges& weight, size_t change);

/// Throws: ConfigError for a dense change, with the advice to replay.
const LowRankDelta& low_rank(const WeightChanges& weight, size_t change);

/// The edits of a change's columns, which begin at `first` of entry.columns. Throws: CheckpointError when there are not
/// as many.
std::vector<int64_t> edits_of_columns(const BatchEntry& entry, size_t first, const LowRankDelta& delta);

/// Null: the change has none.
const SolvedSystem* find_system(const EditedBatch& batch, WeightId id, size_t change);

bool is_zero(const LowRankDelta& delta);

/// U of the change, a row for each of the system's keys, f64. Throws: CheckpointError when a key has no column;
/// ConfigError when the columns do not add up to its residual: the change was filtered after its solve.
Tensor rows_of_keys(const SolvedSystem& system, const LowRankDelta& delta, const std::vector<int64_t>& edits,
                    const std::string& where);

/// Goes the other way: returns `right_RI` with the rows of columns whose edit has a key taken from U.
Tensor rows_of_columns(const SolvedSystem& system, const Tensor& right_NF, const std::vector<int64_t>& edits,
                       const Tensor& right_RI);

}  // namespace lancet
