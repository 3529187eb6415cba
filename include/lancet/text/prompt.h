// A request's texts as token ids: the filled prompt, the token whose hidden state is edited, and the ids of the target.
// Source: the algorithms of ROME (arXiv 2202.05262) and MEMIT (arXiv 2210.07229). Differs from the reference: the
// subject is located by byte ranges, not by lengths of separately tokenised pieces; and the target's ids are those that
// it has after the prompt, not those of the target tokenised alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lancet/text/tokenizer.h"

namespace lancet {

/// The mark in a prompt that stands for the subject, and in a context or chat template for the prompt.
inline constexpr std::string_view kPlaceMark = "{}";

/// Whether a text has exactly one such mark.
bool has_one_place(std::string_view text);

/// A filled prompt that knows where its subject is: prefix, subject, suffix.
struct SubjectPrompt {
  std::string text;  ///< filled: prefix + subject + suffix
  ByteSpan subject;  ///< the subject's bytes in `text`
};

/// Fills a prompt. `prompt` has exactly one "{}" (the subject's place), or none and contains `subject` exactly once.
/// Throws: ConfigError "where: ..." for an empty subject, more than one "{}", an absent subject, or a subject that
/// occurs more than once (remedy: write {} in place of the intended occurrence).
SubjectPrompt fill_prompt(std::string_view prompt, std::string_view subject, std::string_view where);

/// Puts the filled prompt into a context template, which has exactly one "{}" for it: "I know that. {}". Throws:
/// ConfigError if it does not.
SubjectPrompt place_in_context(std::string_view context, const SubjectPrompt& prompt);

struct LocatedPrompt {
  std::vector<TokenId> ids;  ///< ids with BOS
  int64_t lookup = 0;        ///< index of the subject's last token: the last token whose bytes intersect the subject's
};

/// Tokens first..end-1 cover the subject: their bytes intersect the subject's.
struct SubjectTokens {
  std::vector<TokenId> ids;  ///< ids of the whole prompt, with BOS
  int64_t first = 0;
  int64_t end = 0;
};

/// Finds the subject in the prompt alone, with nothing after it. Throws: TokenizerError when no token covers the
/// subject.
SubjectTokens find_subject(const Tokenizer& tokenizer, const SubjectPrompt& prompt);

/// Finds the subject in the prompt as it is tokenised before a target (ContinuedPrompt). Throws: as above.
SubjectTokens find_subject(const SubjectPrompt& prompt, Encoding encoding);

/// Find the subject like the two functions above, but return only its last token.
LocatedPrompt locate_subject(const Tokenizer& tokenizer, const SubjectPrompt& prompt);
LocatedPrompt locate_subject(const SubjectPrompt& prompt, Encoding encoding);

/// Locates the subject as public codes do. They tokenise the text up to the subject's end by itself, and its number of
/// tokens gives the lookup token. This is another token if the end of the subject merges with the text after it.
/// Throws: TokenizerError when the text does not have that many tokens.
LocatedPrompt locate_by_count(const Tokenizer& tokenizer, const SubjectPrompt& prompt);

/// A prompt and its target, with the ids that they have in one text.
struct ContinuedPrompt {
  Encoding prompt;              ///< ids with BOS, without an EOS
  std::vector<TokenId> target;  ///< ids of the target
  /// Whether the prompt's last token also contains the space before the target ("is▁"), so that the prompt's ids differ
  /// from those of the prompt alone. This happens if a tokenizer was trained on whole texts, not on words.
  bool joins = false;
};

/// Puts `target` after `prompt_text`, with a space between them unless the target begins with white space or the prompt
/// ends like the start of a chat's answer: in a line break, or in a mark such as <|assistant|>. Throws: ConfigError
/// "where: ..." when a token contains letters of both (it names the token), or when the target adds no token.
ContinuedPrompt continue_prompt(const Tokenizer& tokenizer, std::string_view prompt_text, std::string_view target,
                                std::string_view where);

}  // namespace lancet
