#include "normalized_text.h"

#include "utf8.h"

namespace lancet {

NormalizedText::NormalizedText(std::string_view text, size_t begin, size_t end)
    : text_(text.substr(begin, end - begin)) {
  origin_.reserve(text_.size());
  for (size_t at = begin; at < end;) {
    const size_t bytes = utf8_bytes(text[at]);
    origin_.insert(origin_.end(), bytes, ByteSpan{static_cast<int64_t>(at), static_cast<int64_t>(at + bytes)});
    at += bytes;
  }
}

NormalizedText NormalizedText::slice(size_t begin, size_t end) const {
  NormalizedText out;
  out.text_ = text_.substr(begin, end - begin);
  out.origin_.assign(origin_.begin() + static_cast<ptrdiff_t>(begin), origin_.begin() + static_cast<ptrdiff_t>(end));
  return out;
}

ByteSpan NormalizedText::origin(size_t begin, size_t end) const {
  while (begin + 1 < end && origin_[begin].begin == origin_[begin].end) ++begin;
  while (begin + 1 < end && origin_[end - 1].begin == origin_[end - 1].end) --end;
  return {origin_[begin].begin, origin_[end - 1].end};
}

void NormalizedText::prepend(std::string_view prefix) {
  if (text_.empty()) return;
  const int64_t at = origin_begin();
  text_.insert(0, prefix);
  origin_.insert(origin_.begin(), prefix.size(), ByteSpan{at, at});
}

void NormalizedText::replace(std::string_view pattern, std::string_view content) {
  NormalizedText out;
  const auto copy = [&](size_t begin, size_t end) {
    out.text_.append(text_, begin, end - begin);
    out.origin_.insert(out.origin_.end(), origin_.begin() + static_cast<ptrdiff_t>(begin),
                       origin_.begin() + static_cast<ptrdiff_t>(end));
  };
  size_t from = 0;
  for (size_t at = text_.find(pattern); at != std::string::npos; at = text_.find(pattern, from)) {
    copy(from, at);
    out.text_ += content;
    out.origin_.insert(out.origin_.end(), content.size(), origin(at, at + pattern.size()));
    from = at + pattern.size();
  }
  copy(from, text_.size());
  *this = std::move(out);
}

void NormalizedText::apply(const NormalizerStep& step) {
  if (const auto* prefix = std::get_if<PrependStep>(&step)) prepend(prefix->text);
  if (const auto* replaced = std::get_if<ReplaceStep>(&step)) replace(replaced->pattern, replaced->content);
}

}  // namespace lancet
