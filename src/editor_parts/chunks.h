// Requests whose targets are cut into chunks (AnyEdit's autoregressive editing, arXiv 2502.05628): values that are
// found one after another, and the places of a text that have none. Defined in layered_editor.cpp.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lancet/editing/editor.h"

namespace lancet {

/// Finds values of some requests on the same weights.
using FindValues = std::function<OptimizedValues(std::span<const PreparedRequest> requests)>;

/// The values of `requests`, all first chunks together, then all second ones with the deltas of the first held in
/// their places, and so on. Where all are first ones this is one call.
OptimizedValues find_in_turn(std::span<const PreparedRequest> requests, const FindValues& find);

/// Every token of the plain prompts and targets, the last one too, at which no chunk has its value; a token is the
/// lookup token of a request of its own. `chunks`: each request's, all of them, first to last.
std::vector<PreparedRequest> other_places(std::span<const PreparedRequest> chunks);

}  // namespace lancet
