// A tokenizer with more ids than its model has rows, because tokens were added to it but not to the model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lancet/text/tokenizer.h"

namespace lancet {

/// Returns a tokenizer whose encode() refuses a text with an id of `rows` or more: it throws TokenizerError with the
/// token, its place in the text, its id, and the number of rows. One warning says how many ids have no row. If no id is
/// beyond `rows`, it returns `tokenizer` itself. Messages name `model`.
std::unique_ptr<Tokenizer> limit_to_rows(std::unique_ptr<Tokenizer> tokenizer, int64_t rows, std::string model);

}  // namespace lancet
