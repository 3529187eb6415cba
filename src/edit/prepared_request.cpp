#include "lancet/edit/prepared_request.h"

#include <functional>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

PreparedRequest prepare_request(const Tokenizer& tokenizer, const EditRequest& request,
                                std::span<const std::string> contexts) {
  const std::string where = cat("request ", request.id);
  if (request.subject.empty())
    throw ConfigError(
        cat(where, ": no subject: this method edits at the subject's last token, so each request names its subject"));
  PreparedRequest prepared;
  prepared.id = request.id;
  for (const std::string& context : contexts)
    prepared.prompts.push_back(locate_subject(tokenizer, place_in_context(context, request.prompt)));
  prepared.target = continuation_ids(tokenizer, request.prompt.text, request.target, where);
  prepared.drift = locate_subject(tokenizer, fill_prompt("{} is a", request.subject, where));
  return prepared;
}

TokenizedRequest tokenize_request(const Tokenizer& tokenizer, const EditRequest& request) {
  return {request.id, tokenizer.ids(request.prompt.text),
          continuation_ids(tokenizer, request.prompt.text, request.target, cat("request ", request.id))};
}

/// `make` of every request; the problems of all of them in one error.
template <typename T>
std::vector<T> for_all(std::span<const EditRequest> requests, const std::function<T(const EditRequest&)>& make) {
  std::vector<T> made;
  std::vector<std::string> problems;
  for (const EditRequest& request : requests) {
    try {
      made.push_back(make(request));
    } catch (const Error& error) {
      problems.emplace_back(error.what());
    }
  }
  if (!problems.empty()) throw ConfigError(join(problems, "\n"));
  return made;
}

}  // namespace

std::vector<PreparedRequest> prepare_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                                              std::span<const std::string> contexts) {
  return for_all<PreparedRequest>(
      requests, [&](const EditRequest& request) { return prepare_request(tokenizer, request, contexts); });
}

std::vector<TokenizedRequest> tokenize_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests) {
  return for_all<TokenizedRequest>(requests,
                                   [&](const EditRequest& request) { return tokenize_request(tokenizer, request); });
}

}  // namespace lancet
