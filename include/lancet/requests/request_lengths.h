// How long the texts of requests may be.
#pragma once

#include <cstdint>
#include <span>

#include "lancet/requests/request.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// A prompt, a paraphrase or a neighbour's prompt and its answer must fit the positions that the model knows
/// (config.json: max_position_embeddings): beyond them it was never trained.
/// Throws: ConfigError with the requests, what of them is too long, and by how much (first 5 shown).
void refuse_long_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests, int64_t max_positions);

}  // namespace lancet
