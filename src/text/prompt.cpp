#include "lancet/text/prompt.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

/// Counts how often `word` occurs in `text`. Overlapping occurrences count, because each may be the place of the
/// subject.
size_t count_occurrences(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

ByteSpan span_of(size_t begin, size_t size) {
  return {static_cast<int64_t>(begin), static_cast<int64_t>(begin + size)};
}

bool is_white(char character) { return kAsciiWhiteSpace.find(character) != std::string_view::npos; }

/// Whether the following text begins a line, or a chat's answer, so that there is no space before it.
bool begins_anew_after(std::string_view prompt) { return prompt.ends_with('\n') || prompt.ends_with("|>"); }

/// Returns the index of the token of `full` with text on both sides of `boundary`, else of the first one that differs
/// from `prompt`.
size_t merging_token(const Encoding& full, const std::vector<TokenId>& prompt, int64_t boundary) {
  for (size_t i = 0; i < full.spans.size(); ++i) {
    if (full.spans[i].begin < boundary && boundary < full.spans[i].end) return i;
  }
  for (size_t i = 0; i < full.ids.size(); ++i) {
    if (i >= prompt.size() || full.ids[i] != prompt[i]) return i;
  }
  return full.ids.size();
}

/// Returns how many of the first tokens of `full_text` have text of the prompt, if the only other text in them is the
/// space after it. Returns nothing if the prompt itself ends in a space: then its last token would have two spaces.
std::optional<size_t> tokens_up_to_space(const Encoding& full, std::string_view full_text, size_t prompt_size) {
  if (prompt_size == 0 || is_white(full_text[prompt_size - 1]) || full_text[prompt_size] != ' ') return std::nullopt;
  const auto end = static_cast<int64_t>(prompt_size);
  const auto target =
      std::find_if(full.spans.begin(), full.spans.end(), [&](ByteSpan span) { return span.begin >= end; });
  if (target == full.spans.begin() || std::prev(target)->end > end + 1) return std::nullopt;
  return static_cast<size_t>(target - full.spans.begin());
}

/// Encodes without special tokens at the end: a prompt will be continued, and an EOS that the tokenizer appends would
/// end it.
Encoding encode_open(const Tokenizer& tokenizer, std::string_view text) {
  Encoding encoding = tokenizer.encode(text);
  if (!encoding.ids.empty() && tokenizer.eos_id() == encoding.ids.back() &&
      encoding.spans.back().begin == encoding.spans.back().end) {
    encoding.ids.pop_back();
    encoding.spans.pop_back();
  }
  return encoding;
}

}  // namespace

bool has_one_place(std::string_view text) { return count_occurrences(text, kPlaceMark) == 1; }

SubjectPrompt fill_prompt(std::string_view prompt, std::string_view subject, std::string_view where) {
  if (subject.empty()) throw ConfigError(cat(where, ": the subject is empty"));
  const size_t places = count_occurrences(prompt, kPlaceMark);
  if (places > 1)
    throw ConfigError(cat(where, ": prompt \"", prompt, "\": {} stands ", places, " times, expected once"));
  if (places == 1) {
    const size_t at = prompt.find(kPlaceMark);
    return {cat(prompt.substr(0, at), subject, prompt.substr(at + kPlaceMark.size())), span_of(at, subject.size())};
  }
  const size_t occurrences = count_occurrences(prompt, subject);
  if (occurrences == 0) {
    throw ConfigError(cat(where, ": prompt \"", prompt, "\" has neither {} nor the subject \"", subject,
                          "\"; write {} where the subject goes"));
  }
  if (occurrences > 1) {
    throw ConfigError(cat(where, ": the subject \"", subject, "\" stands ", occurrences, " times in prompt \"", prompt,
                          "\"; write {} in place of the occurrence that is meant"));
  }
  return {std::string(prompt), span_of(prompt.find(subject), subject.size())};
}

SubjectPrompt place_in_context(std::string_view context, const SubjectPrompt& prompt) {
  const size_t places = count_occurrences(context, kPlaceMark);
  if (places != 1) {
    throw ConfigError(
        cat("context template \"", context, "\": {} stands ", places, " times, expected once: where the prompt goes"));
  }
  const size_t at = context.find(kPlaceMark);
  const auto shift = static_cast<int64_t>(at);
  return {cat(context.substr(0, at), prompt.text, context.substr(at + kPlaceMark.size())),
          {prompt.subject.begin + shift, prompt.subject.end + shift}};
}

SubjectTokens find_subject(const Tokenizer& tokenizer, const SubjectPrompt& prompt) {
  return find_subject(prompt, encode_open(tokenizer, prompt.text));
}

SubjectTokens find_subject(const SubjectPrompt& prompt, Encoding encoding) {
  const auto covers = [&](ByteSpan span) { return span.begin < span.end && span.intersects(prompt.subject); };
  const std::vector<ByteSpan>& spans = encoding.spans;
  const auto first = std::find_if(spans.begin(), spans.end(), covers);
  if (first == spans.end())
    throw TokenizerError(cat("prompt \"", prompt.text, "\": no token covers the subject (bytes ", prompt.subject.begin,
                             " to ", prompt.subject.end, "); the tokenizer drops its characters"));
  const auto last = std::find_if(spans.rbegin(), spans.rend(), covers);
  return {std::move(encoding.ids), first - spans.begin(), spans.rend() - last};
}

LocatedPrompt locate_subject(const Tokenizer& tokenizer, const SubjectPrompt& prompt) {
  return locate_subject(prompt, encode_open(tokenizer, prompt.text));
}

LocatedPrompt locate_subject(const SubjectPrompt& prompt, Encoding encoding) {
  SubjectTokens subject = find_subject(prompt, std::move(encoding));
  return {std::move(subject.ids), subject.end - 1};
}

LocatedPrompt locate_by_count(const Tokenizer& tokenizer, const SubjectPrompt& prompt) {
  const std::string_view until = std::string_view(prompt.text).substr(0, static_cast<size_t>(prompt.subject.end));
  const auto count = static_cast<int64_t>(encode_open(tokenizer, until).ids.size());
  std::vector<TokenId> ids = encode_open(tokenizer, prompt.text).ids;
  if (count < 1 || count > static_cast<int64_t>(ids.size()))
    throw TokenizerError(cat("prompt \"", prompt.text, "\": ", count, " tokens up to the subject's end, ", ids.size(),
                             " in all: the subject's last token cannot be found by counting"));
  return {std::move(ids), count - 1};
}

ContinuedPrompt continue_prompt(const Tokenizer& tokenizer, std::string_view prompt_text, std::string_view target,
                                std::string_view where) {
  if (target.empty()) throw ConfigError(cat(where, ": the target is empty"));
  const bool has_own_space = is_white(target.front()) || begins_anew_after(prompt_text);
  const std::string full_text = cat(prompt_text, has_own_space ? "" : " ", target);
  // Without special tokens, because a target would never follow an EOS.
  const std::vector<TokenId> prompt = tokenizer.ids(prompt_text, SpecialTokens::kNone);
  const Encoding full = tokenizer.encode(full_text, SpecialTokens::kNone);
  ContinuedPrompt continued;
  size_t n_prompt = prompt.size();
  if (n_prompt <= full.ids.size() && std::equal(prompt.begin(), prompt.end(), full.ids.begin())) {
    continued.prompt = encode_open(tokenizer, prompt_text);
  } else if (const std::optional<size_t> joined = tokens_up_to_space(full, full_text, prompt_text.size())) {
    n_prompt = *joined;
    continued.joins = true;
    continued.prompt = encode_open(tokenizer, full_text);
    const size_t with_bos = *tokens_up_to_space(continued.prompt, full_text, prompt_text.size());
    continued.prompt.ids.resize(with_bos);
    continued.prompt.spans.resize(with_bos);
  } else {
    const size_t at = merging_token(full, prompt, static_cast<int64_t>(prompt_text.size()));
    const std::string token = at < full.ids.size() ? cat("token \"", tokenizer.piece(full.ids[at]), "\"") : "a token";
    throw ConfigError(
        cat(where, ": target \"", target, "\" does not continue prompt \"", prompt_text, "\": ", token,
            " merges the end of the prompt with the target, so the target has no tokens of its own; let the prompt end "
            "at the end of a word, without a space, or word it so that its end and the target are not one token"));
  }
  continued.target.assign(full.ids.begin() + static_cast<ptrdiff_t>(n_prompt), full.ids.end());
  if (continued.target.empty()) throw ConfigError(cat(where, ": target \"", target, "\" adds no token to the prompt"));
  return continued;
}

}  // namespace lancet
