// Which requests are optimised together.
#pragma once

#include <span>
#include <vector>

#include "lancet/edit/values.h"
#include "lancet/models/spread_rows.h"

namespace lancet {

/// In how many groups of at most `contexts_per_step` (0: all) a request's contexts are dealt out; a step runs one.
int64_t value_groups(int64_t n_contexts, int64_t contexts_per_step);

/// Collective: how much memory is free is root's. Batches as indices, requests of similar suffix length together, so
/// that little of a batch is padding. Each holds options.batch requests; 0: as many as keep its step within
/// value_step_tokens().
RowBatches plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                              const ValueOptions& options, Communicator& communicator);

/// The requests of the `n_batches` largest of `batches`: what memory must suffice for when as many are under way.
std::vector<int64_t> heaviest_requests(std::span<const PreparedRequest> requests, const ValueOptions& options,
                                       RowBatches batches, int64_t n_batches);

/// Tokens of one step of a batch. On the host 512: activations of more fall out of the caches. On accelerators 16384,
/// or what half of the free memory of every device holds, rounded down to a power of two.
int64_t value_step_tokens(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                          const ValueOptions& options);

/// Bytes that one token of a step takes on each layer above the edited one, from above: activations kept for the
/// gradient, as much again for what is at work, and the token's share of the cached prefix.
int64_t value_bytes_per_token(const ModelConfig& config, const PreparedRequest& request, const ValueOptions& options,
                              int64_t element_bytes);

}  // namespace lancet
