// A tokenizer with more ids than its model has rows: tokens were added to it that the model was never given.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lancet/text/tokenizer.h"

namespace lancet {

/// The same tokenizer, whose encode() refuses a text that has an id of `rows` or more: it throws TokenizerError with
/// the token, its place in the text, its id, and the number of rows. Says once, as a warning, how many ids have no row.
/// `tokenizer` itself where no id is beyond. `model` is named in messages.
std::unique_ptr<Tokenizer> limit_to_rows(std::unique_ptr<Tokenizer> tokenizer, int64_t rows, std::string model);

}  // namespace lancet
