// Second moments of gradients over text: B_l = E[g g^T], g being the gradient of the document's next-token loss, summed
// over its tokens, at the output of a layer's down projection. Labels are the text's own next tokens (the empirical
// Fisher). Source: CrispEdit (arXiv 2602.15823), whose second Kronecker factor it is beside C = E[k k^T]. Differs from
// the reference: a document's last token, which predicts nothing, is not counted; logits are held for some tokens at a
// time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/statistics/covariance.h"

namespace lancet {

/// Padded tokens that go through the model at once, with what a backward pass down to `first_layer` keeps of them: at
/// most kForwardTokens, fewer where that would take more than 1 GB. A longer document goes alone.
int64_t gradient_chunk_tokens(const ModelConfig& config, at::ScalarType dtype, int64_t first_layer);

/// Bytes that one layer keeps of a token for the backward pass.
int64_t backward_token_bytes(const ModelConfig& config, at::ScalarType dtype);

/// Collective: chunks are spread over ranks, all of which get the whole, [d_model, d_model]: one for each of `layers`
/// (ascending).
std::vector<Covariance> collect_gradient_moments(const CausalLM& model, const CorpusTokens& corpus,
                                                 std::span<const int64_t> layers, Communicator& communicator,
                                                 PassOptions options = {});

}  // namespace lancet
