// Second moments of gradients over text: B_l = E[g g^T]. Here g is the gradient of a document's next-token loss, summed
// over its tokens, at the output of a layer's down projection. Labels are the text's own next tokens (the empirical
// Fisher). Source: CrispEdit (arXiv 2602.15823), where B is the second Kronecker factor beside C = E[k k^T]. Differs
// from the reference: a document's last token, which predicts nothing, does not count; logits are computed for some
// tokens at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/statistics/covariance.h"

namespace lancet {

/// Returns the number of padded tokens per chunk, whose activations for a backward pass down to `first_layer` are kept:
/// at most kForwardTokens, or fewer if they would take more than 1 GB. A longer document is a chunk of its own.
int64_t gradient_chunk_tokens(const ModelConfig& config, at::ScalarType dtype, int64_t first_layer);

/// Returns the bytes that one layer keeps per token for the backward pass.
int64_t backward_token_bytes(const ModelConfig& config, at::ScalarType dtype);

/// Collective. Spreads the chunks over the ranks; every rank gets the whole result: one matrix [d_model, d_model] for
/// each of `layers` (ascending).
std::vector<Covariance> collect_gradient_moments(const CausalLM& model, const CorpusTokens& corpus,
                                                 std::span<const int64_t> layers, Communicator& communicator,
                                                 PassOptions options = {});

}  // namespace lancet
