// A request's texts as token ids, made once per job: each context's prompt with its lookup token, the target, the drift
// row.
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

/// Whose tokenisation is reproduced, where published numbers depend on it. Sources: compute_z.py and repr_tools.py of
/// EasyEdit @14cea82, AlphaEdit @f5248d3 and unified-model-editing @23d72b5. Both tokenise " target" by itself, decode
/// all of it but the last token, put that text after the prompt and tokenise the whole again; the target's ids are the
/// labels of the last places, wherever its text now begins; the lookup token is found by the number of tokens of the
/// text up to the subject's end.
enum class Compat {
  kNone,     ///< ids are spliced, the subject is found by its bytes
  kMemit,    ///< leaves out the lone "▁" with which Llama-2's target begins (unified-model-editing)
  kEasyEdit  ///< keeps it: labels lie a place earlier than the text
};

/// How targets become ids.
struct TargetForm {
  Compat compat;
  std::optional<TokenId> end;  ///< token that is put after every target, as its last one
  int64_t chunk_tokens;        ///< length of the chunks that targets are cut into; 0: they stay whole

  TargetForm(Compat whose = Compat::kNone, std::optional<TokenId> end_token = {}, int64_t tokens_of_chunks = 0)
      : compat(whose), end(end_token), chunk_tokens(tokens_of_chunks) {}
};

/// A prompt with its target after it, whose last token is only predicted.
struct TargetRow : LocatedPrompt {
  std::vector<TokenId> target;  ///< ids that the last target.size() places predict
};

/// A change of the hidden state at an earlier token, which stays in place while a value is found.
struct HeldValue {
  int64_t tokens_before = 0;  ///< distance from the lookup token, the same in every row
  std::vector<double> delta_D;
};

/// A request, or one chunk of its target: then the prompts and rows go up to the chunk's beginning, and the lookup
/// token is the last one before it.
struct PreparedRequest {
  std::string id;
  int64_t request = 0;                 ///< place among the requests that were prepared
  int64_t chunk = 0;                   ///< number of the chunk
  std::vector<LocatedPrompt> prompts;  ///< one per context template; [0] is the plain prompt
  std::vector<TokenId> target;         ///< ids that continue the plain prompt, with TargetForm::end
  /// Rows that values are optimised on, one for each context. No place that predicts lies before the lookup token. The
  /// targets are one text; where words stand between the prompt and it (a chat's turns) its ids may be others.
  std::vector<TargetRow> rows;
  LocatedPrompt drift;  ///< "{subject} is a": the row whose distribution should not move; of a chunk the plain prompt
  std::vector<HeldValue> held = {};  ///< deltas of the request's earlier chunks, once they are found
};

/// One for each request; with TargetForm::chunk_tokens one for each chunk of each, first to last, and no subject is
/// needed. Throws: ConfigError listing every request whose subject or target cannot be placed.
std::vector<PreparedRequest> prepare_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                                              std::span<const std::string> contexts, const TargetForm& form = {});

/// A request for methods that train on its text and know no subject.
struct TokenizedRequest {
  std::string id;
  std::vector<TokenId> prompt;  ///< filled, with BOS
  std::vector<TokenId> target;  ///< ids that continue the prompt
};

/// `end` is put after every target. Throws: ConfigError listing every request whose target cannot be placed.
std::vector<TokenizedRequest> tokenize_requests(const Tokenizer& tokenizer, std::span<const EditRequest> requests,
                                                std::optional<TokenId> end = {});

// How long the texts of requests may be: what is edited, and what is measured before and after.

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
