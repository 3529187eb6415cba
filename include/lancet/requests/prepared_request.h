// A request's texts as token ids, made once per job: each context's prompt with its lookup token, the target, and the
// drift row.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lancet/requests/request.h"
#include "lancet/text/prompt.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// Whose tokenisation to reproduce, because published numbers depend on it. Sources: compute_z.py and repr_tools.py of
/// EasyEdit @14cea82, AlphaEdit @f5248d3 and unified-model-editing @23d72b5. Both variants tokenise " target" by
/// itself, decode all of it except the last token, append that text to the prompt, and tokenise the whole again. The
/// target's ids are the labels of the last places, wherever its text now begins. The lookup token is found from the
/// number of tokens of the text up to the subject's end.
enum class Compat {
  kNone,     ///< ids are spliced; the subject is found by its bytes
  kMemit,    ///< drops the separate "▁" with which Llama-2's target begins (unified-model-editing)
  kEasyEdit  ///< keeps it, so labels are one place earlier than the text
};

/// How targets become ids, and which other prompts about the subject belong to a request.
struct TargetForm {
  Compat compat;
  std::optional<TokenId> end;          ///< token that is appended to every target
  int64_t chunk_tokens;                ///< number of tokens per chunk of a target; 0: targets stay whole
  std::vector<std::string> kept = {};  ///< templates of PreparedRequest::kept, with {} in the place of the subject

  TargetForm(Compat whose = Compat::kNone, std::optional<TokenId> end_token = {}, int64_t tokens_of_chunks = 0)
      : compat(whose), end(end_token), chunk_tokens(tokens_of_chunks) {}
};

/// A prompt followed by its target. The target's last token is not an input; it is only predicted.
struct TargetRow : LocatedPrompt {
  std::vector<TokenId> target;  ///< ids that the last target.size() places predict
};

/// A change of the hidden state at an earlier token, which stays in place while a value is optimised.
struct HeldValue {
  int64_t tokens_before = 0;  ///< distance to the lookup token, the same in every row
  std::vector<double> delta_D;
};

/// A request, or one chunk of its target. For a chunk, the prompts and rows end where the chunk begins, and the lookup
/// token is the last token before it.
struct PreparedRequest {
  std::string id;
  int64_t request = 0;  ///< index of the request among the prepared ones
  int64_t chunk = 0;    ///< number of the chunk
  /// One per context template, [0] is the plain prompt; then one per rewording of the request. All requests that are
  /// prepared together have as many: those with fewer rewordings have their plain prompts again.
  std::vector<LocatedPrompt> prompts;
  std::vector<TokenId> target;  ///< ids that continue the plain prompt, with TargetForm::end
  /// The rows on which values are optimised, one per context. No place that predicts is before the lookup token. All
  /// targets are the same text; if words stand between the prompt and the target (a chat's turns), its ids may differ.
  std::vector<TargetRow> rows;
  LocatedPrompt drift;  ///< "{subject} is a": the row whose distribution should not move; for a chunk the plain prompt
  /// Other prompts about the subject, after which the distribution should not move either. The edited prompt is not
  /// among them.
  std::vector<LocatedPrompt> kept = {};
  std::vector<HeldValue> held = {};  ///< deltas of the request's earlier chunks, once they have been found
};

/// Prepares the requests: one result per request, or with TargetForm::chunk_tokens one per chunk, first to last; with
/// chunks no subject is needed. Throws: ConfigError that lists every request whose subject or target cannot be located.
std::vector<PreparedRequest> prepare_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                                              std::span<const std::string> contexts, const TargetForm& form = {});

/// A request for methods that train on its text and need no subject.
struct TokenizedRequest {
  std::string id;
  std::vector<TokenId> prompt;  ///< filled prompt, with BOS
  std::vector<TokenId> target;  ///< ids that continue the prompt
};

/// Tokenises the requests. `end` is appended to every target. Throws: ConfigError that lists every request whose target
/// cannot be located.
std::vector<TokenizedRequest> tokenize_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                                                std::optional<TokenId> end = {});

// Limits on the lengths of requests' texts: of those that are edited, and of those that are measured before and after.

/// Collects texts that are too long, so that all are reported at once. A text with its continuation must fit the
/// positions that the model knows (config.json: max_position_embeddings), because the model was never trained beyond
/// them.
class TextLimit {
 public:
  explicit TextLimit(int64_t max_positions) : max_positions_(max_positions) {}

  bool has_room(int64_t tokens) const { return tokens <= max_positions_; }
  /// Records a text that does not fit, such as "request 3: prompt and target"; the same text twice counts once.
  void note(const std::string& text, int64_t tokens);
  /// Throws: ConfigError with the recorded texts (the first 5 are shown), if there are any.
  void refuse() const;

 private:
  int64_t max_positions_;
  std::vector<std::string> shown_;
  std::set<std::string> noted_;
};

/// Checks the lengths of what an edit itself reads: prompt and target. Throws: ConfigError as TextLimit::refuse().
void refuse_long_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests, int64_t max_positions);

}  // namespace lancet
