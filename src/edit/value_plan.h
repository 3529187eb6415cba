// Which requests are optimised together.
#pragma once

#include <span>
#include <vector>

#include "lancet/edit/prepared_request.h"
#include "lancet/models/causal_lm.h"

namespace lancet {

/// Batches as indices, requests of similar suffix length together, so that little of a batch is padding. `batch`: how
/// many requests each holds; 0: as many as keep its step within value_step_tokens().
std::vector<std::vector<int64_t>> plan_value_batches(const CausalLM& model, std::span<const PreparedRequest> requests,
                                                     int64_t layer, int64_t batch);

/// The requests of the largest batches, as many batches as are under way at a time: what memory must suffice for.
std::vector<int64_t> heaviest_requests(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer,
                                       int64_t batch);

/// Tokens of one step of a batch. On the host 512: activations of more fall out of the caches. On accelerators 16384,
/// or what half of the free memory of every device holds, rounded down to a power of two.
int64_t value_step_tokens(const CausalLM& model, std::span<const PreparedRequest> requests, int64_t layer);

/// Bytes that one token of a step takes on each layer above the edited one, from above: activations kept for the
/// gradient, as much again for what is at work, and the token's share of the cached prefix.
int64_t value_bytes_per_token(const ModelConfig& config, const PreparedRequest& request, int64_t element_bytes);

}  // namespace lancet
