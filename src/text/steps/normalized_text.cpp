#include "normalized_text.h"

#include <algorithm>

#include "byte_alphabet.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"

namespace lancet {
namespace {

size_t most_bytes(size_t text) { return kMostGrowth * text + kAlwaysRoom; }

}  // namespace

NormalizedText::NormalizedText(std::string_view text, size_t begin, size_t end)
    : text_(text.substr(begin, end - begin)), first_(begin), most_(most_bytes(text_.size())) {}

TextPiece NormalizedText::origin_of(size_t at) const {
  if (!origin_.empty()) return origin_[at];
  size_t begin = at;
  while (begin > 0 && !begins_character(text_[begin])) --begin;
  return {first_ + begin, first_ + begin + utf8_bytes(text_[begin])};
}

void NormalizedText::write_origins() {
  if (!origin_.empty()) return;
  std::vector<TextPiece> origin;
  origin.reserve(text_.size());
  while (origin.size() < text_.size())
    origin.insert(origin.end(), utf8_bytes(text_[origin.size()]), origin_of(origin.size()));
  origin_ = std::move(origin);
}

NormalizedText NormalizedText::slice(size_t begin, size_t end) const {
  NormalizedText out;
  out.most_ = most_;
  out.text_ = text_.substr(begin, end - begin);
  out.first_ = first_ + begin;
  if (!origin_.empty())
    out.origin_.assign(origin_.begin() + static_cast<ptrdiff_t>(begin), origin_.begin() + static_cast<ptrdiff_t>(end));
  return out;
}

TextPiece NormalizedText::origin(size_t begin, size_t end) const {
  const auto is_put_in = [&](size_t at) { return !origin_.empty() && origin_[at].begin == origin_[at].end; };
  while (begin + 1 < end && is_put_in(begin)) ++begin;
  while (begin + 1 < end && is_put_in(end - 1)) --end;
  return {origin_of(begin).begin, origin_of(end - 1).end};
}

void NormalizedText::prepend(std::string_view prefix) {
  if (text_.empty()) return;
  require_room(prefix.size());
  write_origins();
  const size_t at = origin_begin();
  text_.insert(0, prefix);
  origin_.insert(origin_.begin(), prefix.size(), TextPiece{at, at});
}

void NormalizedText::require_room(size_t added) const {
  if (added <= most_ - std::min(most_, text_.size())) return;
  throw TokenizerError(cat("tokenizer: the normalizer makes a text longer than ", most_, " bytes of it, which is ",
                           kMostGrowth, " times as long and ", kAlwaysRoom,
                           " bytes more; such a tokenizer.json is damaged or made to take all memory: download the "
                           "model's own"));
}

/// A new text from stretches of another one, unchanged or replaced.
class NormalizedText::Rewriting {
 public:
  explicit Rewriting(NormalizedText& from) : from_(from) {
    from.write_origins();
    out_.most_ = from.most_;
  }

  /// `begin` must not be before the end of the last replacement.
  void replace(size_t begin, size_t end, std::string_view content) {
    copy_until(begin);
    out_.require_room(content.size());
    out_.text_ += content;
    out_.origin_.insert(out_.origin_.end(), content.size(), begin < end ? from_.origin(begin, end) : place_of(begin));
    done_ = end;
  }

  NormalizedText finished() {
    copy_until(from_.text_.size());
    return std::move(out_);
  }

 private:
  void copy_until(size_t end) {
    out_.text_.append(from_.text_, done_, end - done_);
    out_.origin_.insert(out_.origin_.end(), from_.origin_.begin() + static_cast<ptrdiff_t>(done_),
                        from_.origin_.begin() + static_cast<ptrdiff_t>(end));
  }

  /// Returns the place of inserted text, which belongs to no original byte.
  TextPiece place_of(size_t at) const {
    if (from_.text_.empty()) return {from_.first_, from_.first_};
    const size_t place = at < from_.text_.size() ? from_.origin_of(at).begin : from_.origin_of(at - 1).end;
    return {place, place};
  }

  const NormalizedText& from_;
  NormalizedText out_;
  size_t done_ = 0;
};

void NormalizedText::replace(std::span<const TextPiece> places, std::string_view content) {
  if (places.empty()) return;
  Rewriting rewriting(*this);
  for (const TextPiece& place : places) rewriting.replace(place.begin, place.end, content);
  *this = rewriting.finished();
}

void NormalizedText::change(std::span<const TextChange> changes) {
  if (changes.empty()) return;
  Rewriting rewriting(*this);
  for (const TextChange& one : changes) rewriting.replace(one.begin, one.end, one.text);
  *this = rewriting.finished();
}

void NormalizedText::spell() {
  NormalizedText out;
  out.most_ = most_;
  for (size_t at = 0; at < text_.size(); ++at) {
    const std::string spelling = spell_bytes(std::string_view(text_).substr(at, 1));
    out.require_room(spelling.size());
    out.text_ += spelling;
    out.origin_.insert(out.origin_.end(), spelling.size(), origin_of(at));
  }
  *this = std::move(out);
}

void NormalizedText::append(const NormalizedText& more) {
  require_room(more.text_.size());
  write_origins();
  text_ += more.text_;
  for (size_t at = 0; at < more.text_.size(); ++at) origin_.push_back(more.origin_of(at));
}

}  // namespace lancet
