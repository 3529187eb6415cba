// Requests whose targets are cut into chunks (AnyEdit's autoregressive editing, arXiv 2502.05628). Values are found one
// chunk after another; the other tokens of a text have no value. Defined in layered_editor.cpp.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lancet/editing/editor.h"

namespace lancet {

/// Finds the values of the given requests, all on the same weights.
using FindValues = std::function<OptimizedValues(std::span<const PreparedRequest> requests)>;

/// Finds the values of `requests`: all first chunks together, then all second chunks with the deltas of the first ones
/// held in place, and so on. If there are only first chunks, this is one call of `find`.
OptimizedValues find_in_turn(std::span<const PreparedRequest> requests, const FindValues& find);

/// Returns every token of the plain prompts and targets (also the last token) at which no chunk has its value. Each
/// token is the lookup token of a request of its own. `chunks`: all chunks of all requests, from first to last.
std::vector<PreparedRequest> other_places(std::span<const PreparedRequest> chunks);

}  // namespace lancet
