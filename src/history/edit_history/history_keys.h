// The keys that a method's state has of earlier edits: which columns a batch added, and to which edits they belong.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

inline constexpr std::string_view kHistoryPrefix = "keys.";
/// Returns "keys.3", the name for the down projection of layer 3.
std::string history_name(int64_t layer);

inline constexpr std::string_view kCurvaturePrefix = "curvature.";
inline constexpr std::string_view kTextsPrefix = "texts.";

/// Whether this tensor of the state has columns of edits (keys, trained tokens, or texts), to which each batch appends
/// its own.
bool is_history(const std::string& name, const Tensor& tensor);

/// Returns the edit of each of the `n_columns` columns that the batch appended for the layer: its targets, in their
/// order. Throws: ConfigError with the advice to replay, if this is not certain.
std::vector<std::vector<int64_t>> history_columns(const EditedBatch& batch, const BatchEntry& entry, int64_t layer,
                                                  int64_t n_columns);

}  // namespace lancet
