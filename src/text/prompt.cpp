#include "lancet/text/prompt.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr std::string_view kPlace = "{}";

/// How often `word` stands in `text`; overlapping occurrences count, because each is a place the subject may be meant.
size_t count_occurrences(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

ByteSpan span_of(size_t begin, size_t size) {
  return {static_cast<int64_t>(begin), static_cast<int64_t>(begin + size)};
}

bool begins_with_white_space(std::string_view text) {
  return !text.empty() && std::string_view(" \t\n\r\f\v").find(text.front()) != std::string_view::npos;
}

/// The token of `full` that has text on both sides of `boundary`, else the first that differs from `prompt`.
size_t merging_token(const Encoding& full, const std::vector<TokenId>& prompt, int64_t boundary) {
  for (size_t i = 0; i < full.spans.size(); ++i) {
    if (full.spans[i].begin < boundary && boundary < full.spans[i].end) return i;
  }
  for (size_t i = 0; i < full.ids.size(); ++i) {
    if (i >= prompt.size() || full.ids[i] != prompt[i]) return i;
  }
  return full.ids.size();
}

/// A prompt is there to be continued: an EOS that the tokenizer puts after every text would end it.
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

SubjectPrompt fill_prompt(std::string_view prompt, std::string_view subject, std::string_view where) {
  if (subject.empty()) throw ConfigError(cat(where, ": the subject is empty"));
  const size_t places = count_occurrences(prompt, kPlace);
  if (places > 1)
    throw ConfigError(cat(where, ": prompt \"", prompt, "\": {} stands ", places, " times, expected once"));
  if (places == 1) {
    const size_t at = prompt.find(kPlace);
    return {cat(prompt.substr(0, at), subject, prompt.substr(at + kPlace.size())), span_of(at, subject.size())};
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
  const size_t places = count_occurrences(context, kPlace);
  if (places != 1) {
    throw ConfigError(
        cat("context template \"", context, "\": {} stands ", places, " times, expected once: where the prompt goes"));
  }
  const size_t at = context.find(kPlace);
  const auto shift = static_cast<int64_t>(at);
  return {cat(context.substr(0, at), prompt.text, context.substr(at + kPlace.size())),
          {prompt.subject.begin + shift, prompt.subject.end + shift}};
}

SubjectTokens find_subject(const Tokenizer& tokenizer, const SubjectPrompt& prompt) {
  Encoding encoding = encode_open(tokenizer, prompt.text);
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
  SubjectTokens subject = find_subject(tokenizer, prompt);
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

std::vector<TokenId> continuation_ids(const Tokenizer& tokenizer, std::string_view prompt_text, std::string_view target,
                                      std::string_view where) {
  if (target.empty()) throw ConfigError(cat(where, ": the target is empty"));
  const std::string full_text = cat(prompt_text, begins_with_white_space(target) ? "" : " ", target);
  // Without special tokens: an EOS after the prompt would never be followed by the target.
  const std::vector<TokenId> prompt = tokenizer.ids(prompt_text, SpecialTokens::kNone);
  const Encoding full = tokenizer.encode(full_text, SpecialTokens::kNone);
  const bool is_prefix = prompt.size() <= full.ids.size() && std::equal(prompt.begin(), prompt.end(), full.ids.begin());
  if (!is_prefix) {
    const size_t at = merging_token(full, prompt, static_cast<int64_t>(prompt_text.size()));
    const std::string token = at < full.ids.size() ? cat("token \"", tokenizer.piece(full.ids[at]), "\"") : "a token";
    throw ConfigError(
        cat(where, ": target \"", target, "\" does not continue prompt \"", prompt_text, "\": ", token,
            " merges the end of the prompt with the target, so the target has no tokens of its own; let the "
            "prompt end at the end of a word, without a space"));
  }
  if (prompt.size() == full.ids.size())
    throw ConfigError(cat(where, ": target \"", target, "\" adds no token to the prompt"));
  return {full.ids.begin() + static_cast<ptrdiff_t>(prompt.size()), full.ids.end()};
}

}  // namespace lancet
