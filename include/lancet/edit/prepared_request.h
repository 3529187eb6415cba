// A request's texts as token ids, made once per job: each context's prompt with its lookup token, the target, the drift
// row.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/edit/request.h"
#include "lancet/text/prompt.h"

namespace lancet {

struct PreparedRequest {
  std::string id;
  std::vector<LocatedPrompt> prompts;  ///< one per context template; [0] is the plain prompt
  std::vector<TokenId> target;         ///< as it continues the plain prompt; spliced behind every context
  LocatedPrompt drift;                 ///< "{subject} is a": the row whose distribution should not move
};

/// Throws: ConfigError listing every request whose subject or target cannot be placed.
std::vector<PreparedRequest> prepare_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                                              std::span<const std::string> contexts);

/// A request for methods that train on its text and know no subject.
struct TokenizedRequest {
  std::string id;
  std::vector<TokenId> prompt;  ///< filled, with BOS
  std::vector<TokenId> target;  ///< as it continues the prompt
};

/// Throws: ConfigError listing every request whose target cannot be placed.
std::vector<TokenizedRequest> tokenize_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests);

}  // namespace lancet
