#include "lancet/tokenizer_files/added_token_finder.h"

#include "lancet/tokenizer_files/utf8.h"

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

uint64_t step_from(uint32_t node, char byte) { return uint64_t{node} << 8 | static_cast<uint8_t>(byte); }

}  // namespace

void AddedTokenFinder::add(std::string_view pattern, const AddedToken& token) {
  begins_[static_cast<uint8_t>(pattern.front())] = true;
  uint32_t node = 0;
  for (const char byte : pattern) {
    const auto [at, is_new] = next_.try_emplace(step_from(node, byte), static_cast<uint32_t>(token_at_.size()));
    if (is_new) token_at_.push_back(nullptr);
    node = at->second;
  }
  if (token_at_[node] == nullptr) token_at_[node] = &token;
}

AddedTokenFinder::Match AddedTokenFinder::longest_at(std::string_view text, size_t at) const {
  Match found;
  if (!begins_[static_cast<uint8_t>(text[at])]) return found;
  uint32_t node = 0;
  while (at < text.size()) {
    const auto next = next_.find(step_from(node, text[at++]));
    if (next == next_.end()) break;
    node = next->second;
    if (token_at_[node] != nullptr) found = {token_at_[node], at};
  }
  return found;
}

std::vector<TextPart> AddedTokenFinder::split(std::string_view text) const {
  std::vector<TextPart> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const auto [token, match_end] = longest_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    const size_t begin = token->lstrip ? white_space_before(text, at, done) : at;
    const size_t end = token->rstrip ? white_space_after(text, match_end) : match_end;
    if (done < begin) parts.push_back({nullptr, done, begin});
    parts.push_back({token, begin, end});
    done = end;
    at = match_end;  // not `end`: the next token may itself begin with white space
  }
  if (done < text.size()) parts.push_back({nullptr, done, text.size()});
  return parts;
}

}  // namespace lancet
