#include "added_token_finder.h"

#include <algorithm>
#include <cstdint>

#include "utf8.h"

namespace lancet {
namespace {

size_t white_space_after(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint next = decode_utf8_at(text, at);
    if (!is_white_space(next.value)) break;
    at += next.bytes;
  }
  return at;
}

size_t white_space_before(std::string_view text, size_t at, size_t limit) {
  while (at > limit) {
    size_t lead = at - 1;
    while (lead > limit && (static_cast<uint8_t>(text[lead]) & 0xC0) == 0x80) --lead;
    if (!is_white_space(decode_utf8_at(text, lead).value)) break;
    at = lead;
  }
  return at;
}

}  // namespace

void AddedTokenFinder::add(std::string pattern, const AddedToken& token) {
  std::vector<Pattern>& patterns = by_first_byte_[static_cast<uint8_t>(pattern.front())];
  patterns.push_back({std::move(pattern), &token});
  std::stable_sort(patterns.begin(), patterns.end(),
                   [](const Pattern& a, const Pattern& b) { return a.text.size() > b.text.size(); });
}

const AddedTokenFinder::Pattern* AddedTokenFinder::longest_at(std::string_view text, size_t at) const {
  for (const Pattern& pattern : by_first_byte_[static_cast<uint8_t>(text[at])]) {
    if (text.compare(at, pattern.text.size(), pattern.text) == 0) return &pattern;
  }
  return nullptr;
}

std::vector<TextPart> AddedTokenFinder::split(std::string_view text) const {
  std::vector<TextPart> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const Pattern* found = longest_at(text, at);
    if (found == nullptr) {
      ++at;
      continue;
    }
    const size_t match_end = at + found->text.size();
    const size_t begin = found->token->lstrip ? white_space_before(text, at, done) : at;
    const size_t end = found->token->rstrip ? white_space_after(text, match_end) : match_end;
    if (done < begin) parts.push_back({nullptr, done, begin});
    parts.push_back({found->token, begin, end});
    done = end;
    at = match_end;  // not `end`: the next token may itself begin with white space
  }
  if (done < text.size()) parts.push_back({nullptr, done, text.size()});
  return parts;
}

}  // namespace lancet
