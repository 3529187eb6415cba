// Which requests are optimised together.
#pragma once

#include <span>
#include <vector>

#include "lancet/models/scatter_rows.h"
#include "lancet/training/values.h"

namespace lancet {

/// Indices of `tokens` in so many batches, of as nearly equal sums and sizes as dealing them out in turns gives, the
/// largest first. Each ascending; fewer where there are fewer indices.
RowBatches deal_out(std::span<const int64_t> tokens, int64_t n_batches);

/// Collective: how much memory is free is root's. Batches as indices, dealt out evenly. Each holds at most
/// options.batch requests; 0: as many as keep its step within value_step_tokens(), on the host
/// perhaps fewer, so that every thread runs equally many batches.
RowBatches plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                              const ValueOptions& options, Communicator& communicator);

/// The requests of the `n_batches` largest of `batches`: what memory must suffice for when as many are under way.
std::vector<int64_t> heaviest_requests(std::span<const PreparedRequest> requests, const ValueOptions& options,
                                       RowBatches batches, int64_t n_batches);

}  // namespace lancet
