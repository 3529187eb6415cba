// The histories that a method's state carries: which columns a batch put there, and of which edits.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

inline constexpr std::string_view kHistoryPrefix = "keys.";
/// "keys.3": of a layer's down projection.
std::string history_name(int64_t layer);

inline constexpr std::string_view kCurvaturePrefix = "curvature.";
inline constexpr std::string_view kTextsPrefix = "texts.";

/// Whether the state has columns of edits there, those of a batch after those of the batches before: keys, tokens that
/// were trained on, or texts.
bool is_history(const std::string& name, const Tensor& tensor);

/// The edits of each of the `n_columns` that the batch put after the layer's history: its targets, in their order.
/// Throws: ConfigError, with the advice to replay, where that is not certain.
std::vector<std::vector<int64_t>> history_columns(const EditedBatch& batch, const BatchEntry& entry, int64_t layer,
                                                  int64_t n_columns);

}  // namespace lancet
