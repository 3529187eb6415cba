// A request's texts as token ids: the filled prompt, the token whose hidden state is edited, the ids of the target.
// Source: algorithms of ROME (arXiv 2202.05262) and MEMIT (arXiv 2210.07229). Differs from the reference: the subject
// is located by byte ranges, not by lengths of separately tokenised pieces, and the target's ids are those that it has
// after the prompt, not those of the target by itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/text/tokenizer.h"

namespace lancet {

/// Mark in a prompt where the subject goes, and in a context or chat template where the prompt goes.
inline constexpr std::string_view kPlaceMark = "{}";

/// Whether a text has exactly one such place.
bool has_one_place(std::string_view text);

/// A prompt with the subject's place marked: text before, subject, text after.
struct SubjectPrompt {
  std::string text;  ///< filled: prefix + subject + suffix
  ByteSpan subject;  ///< the subject's bytes in `text`
};

/// `prompt` has exactly one "{}" (the subject's place), or none and contains `subject` exactly once.
/// Throws: ConfigError "where: ..." for an empty subject, more than one "{}", an absent subject, or a subject that
/// occurs more than once (remedy: write {} in place of the occurrence that is meant).
SubjectPrompt fill_prompt(std::string_view prompt, std::string_view subject, std::string_view where);

/// A context template has exactly one "{}", where the filled prompt goes: "I know that. {}".
/// Throws: ConfigError when it has not.
SubjectPrompt place_in_context(std::string_view context, const SubjectPrompt& prompt);

struct LocatedPrompt {
  std::vector<TokenId> ids;  ///< ids with BOS
  int64_t lookup = 0;        ///< index of the subject's last token: the last one whose bytes intersect the subject's
};

/// Tokens first..end-1 cover the subject: those whose bytes intersect the subject's.
struct SubjectTokens {
  std::vector<TokenId> ids;  ///< ids of the whole prompt, with BOS
  int64_t first = 0;
  int64_t end = 0;
};

/// Finds the subject in the prompt with nothing after it. Throws: TokenizerError when no token covers the subject.
SubjectTokens find_subject(const Tokenizer& tokenizer, const SubjectPrompt& prompt);

/// Finds the subject in the prompt as it stands before a target (ContinuedPrompt). Throws: likewise.
SubjectTokens find_subject(const SubjectPrompt& prompt, Encoding encoding);

/// Finds the subject as those two do; its last token alone is asked for.
LocatedPrompt locate_subject(const Tokenizer& tokenizer, const SubjectPrompt& prompt);
LocatedPrompt locate_subject(const SubjectPrompt& prompt, Encoding encoding);

/// Locates the subject as public codes do: the lookup token's number is that of the tokens of the text up to the
/// subject's end, tokenised by itself, which is another token where the end merges with what follows.
/// Throws: TokenizerError when the text has not as many tokens.
LocatedPrompt locate_by_count(const Tokenizer& tokenizer, const SubjectPrompt& prompt);

/// A prompt and its target, with the ids that they have in one text.
struct ContinuedPrompt {
  Encoding prompt;              ///< ids with BOS, without an EOS
  std::vector<TokenId> target;  ///< what follows
  /// The prompt's last token holds the space before the target too ("is▁"), so that the prompt's ids are others
  /// than with nothing after it. So it is where a tokenizer was trained on whole texts, not on words.
  bool joins = false;
};

/// `target` after `prompt_text`, and a space between them unless the target begins with white space or the prompt ends
/// as the beginning of a chat's answer does: in a line break, or in a mark such as <|assistant|>. Throws:
/// ConfigError "where: ..." when a token holds letters of both (names it), or the target adds no token.
ContinuedPrompt continue_prompt(const Tokenizer& tokenizer, std::string_view prompt_text, std::string_view target,
                                std::string_view where);

}  // namespace lancet
