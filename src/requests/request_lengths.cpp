#include "lancet/requests/request_lengths.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr size_t kShownTexts = 5;

}  // namespace

void TextLimit::note(const std::string& text, int64_t tokens) {
  if (noted_.insert(text).second && shown_.size() < kShownTexts) shown_.push_back(cat(text, ": ", tokens, " tokens"));
}

void TextLimit::refuse() const {
  if (noted_.empty()) return;
  throw ConfigError(cat("requests: expected texts within the model's ", max_positions_,
                        " positions (config.json: max_position_embeddings), got ", join(shown_, "; "),
                        noted_.size() > shown_.size() ? cat(" and ", noted_.size() - shown_.size(), " more") : "",
                        "; shorten or leave them out"));
}

void refuse_long_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests, int64_t max_positions) {
  TextLimit limit(max_positions);
  for (const EditRequest& request : requests) {
    const size_t tokens =
        tokenizer.ids(request.prompt.text).size() + tokenizer.ids(request.target, SpecialTokens::kNone).size();
    if (!limit.has_room(static_cast<int64_t>(tokens)))
      limit.note(cat("request ", request.id, ": prompt and target"), static_cast<int64_t>(tokens));
  }
  limit.refuse();
}

}  // namespace lancet
