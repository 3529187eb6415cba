#include "lancet/requests/request_lengths.h"

#include <algorithm>
#include <string>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr size_t kShownRequests = 5;

/// A text of a request that is measured, with what follows it.
struct MeasuredText {
  std::string what;
  int64_t tokens = 0;
};

class TextLengths {
 public:
  explicit TextLengths(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// The longest of a request.
  MeasuredText longest(const EditRequest& request) const {
    MeasuredText found = of("prompt and target", request.prompt.text, request.target);
    for (const std::string& prompt : request.paraphrases)
      keep_longer(found, of("a paraphrase and the target", prompt, request.target));
    for (const std::string& prompt : request.neighborhood)
      keep_longer(found, of("a neighborhood prompt and its answer", prompt, request.target_true.value_or("")));
    return found;
  }

 private:
  MeasuredText of(const char* what, const std::string& prompt, const std::string& answer) const {
    const size_t tokens = tokenizer_.ids(prompt).size() + tokenizer_.ids(answer, SpecialTokens::kNone).size();
    return {what, static_cast<int64_t>(tokens)};
  }

  static void keep_longer(MeasuredText& found, MeasuredText other) {
    if (other.tokens > found.tokens) found = std::move(other);
  }

  const Tokenizer& tokenizer_;
};

}  // namespace

void refuse_long_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests, int64_t max_positions) {
  const TextLengths lengths(tokenizer);
  std::vector<std::string> too_long;
  for (const EditRequest& request : requests)
    if (const MeasuredText text = lengths.longest(request); text.tokens > max_positions)
      too_long.push_back(cat("request ", request.id, ": ", text.what, ": ", text.tokens, " tokens"));
  if (too_long.empty()) return;
  const size_t count = too_long.size();
  too_long.resize(std::min(count, kShownRequests));
  throw ConfigError(cat("requests: expected texts within the model's ", max_positions,
                        " positions (config.json: max_position_embeddings), got ", join(too_long),
                        count > kShownRequests ? cat(" and ", count - kShownRequests, " more") : "",
                        "; shorten or leave them out"));
}

}  // namespace lancet
