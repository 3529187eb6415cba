// How long the texts of requests may be: what is edited, and what is measured before and after.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lancet/requests/request.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// A text with what follows it must fit the positions that the model knows (config.json: max_position_embeddings):
/// beyond them it was never trained. Collects those that do not, so that all are told at once.
class TextLimit {
 public:
  explicit TextLimit(int64_t max_positions) : max_positions_(max_positions) {}

  bool has_room(int64_t tokens) const { return tokens <= max_positions_; }
  /// "request 3: prompt and target"; the same one twice counts once.
  void note(const std::string& text, int64_t tokens);
  /// Throws: ConfigError with what was noted (first 5 shown), if anything was.
  void refuse() const;

 private:
  int64_t max_positions_;
  std::vector<std::string> shown_;
  std::set<std::string> noted_;
};

/// What an edit itself reads: prompt and target. Throws: ConfigError as TextLimit::refuse().
void refuse_long_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests, int64_t max_positions);

}  // namespace lancet
