#include "nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "lancet/tokenizer_files/json_node.h"

namespace lancet {
namespace {

using NfcPoint = utf8proc_int32_t;
using NfcPoints = std::vector<NfcPoint>;

/// Characters below are NFC by themselves, and join nothing before them.
constexpr char32_t kFirstMark = 0x300;
constexpr uint8_t kFirstMarkLead = 0xCC;  // UTF-8's first byte of kFirstMark

/// 0: a character that begins something; others stand in the order of their class after it.
int mark_class(NfcPoint point) { return utf8proc_get_property(point)->combining_class; }

void append_decomposed(char32_t character, NfcPoints& out) {
  std::array<NfcPoint, 8> points{};  // the longest canonical decomposition has four
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<NfcPoint>(character), points.data(), points.size(),
                                             UTF8PROC_DECOMPOSE, &boundary);
  out.insert(out.end(), points.begin(), points.begin() + count);
}

NfcPoints composed(NfcPoints points) {
  const auto size = static_cast<utf8proc_ssize_t>(points.size());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  points.resize(static_cast<size_t>(utf8proc_normalize_utf32(points.data(), size, options)));
  return points;
}

/// Marks after a character in the order of their classes, those of one class as they stand.
void order_marks(NfcPoints& points) {
  const auto is_mark = [](NfcPoint point) { return mark_class(point) != 0; };
  for (auto begin = points.begin(); begin != points.end();) {
    begin = std::find_if(begin, points.end(), is_mark);
    const auto end = std::find_if_not(begin, points.end(), is_mark);
    std::stable_sort(begin, end, [](NfcPoint a, NfcPoint b) { return mark_class(a) < mark_class(b); });
    begin = end;
  }
}

std::string spelled(const NfcPoints& points) {
  std::string out;
  for (const NfcPoint point : points) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto count = utf8proc_encode_char(point, bytes.data());
    out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(count));
  }
  return out;
}

/// A character and what joins it, decomposed.
struct NfcCluster {
  size_t begin = 0;
  NfcPoints points;
  bool is_settled = true;  ///< one character below kFirstMark

  NfcPoints whole() const {
    NfcPoints ordered = points;
    order_marks(ordered);
    return composed(std::move(ordered));
  }

  /// Whether a character that decomposes to `first` and more belongs to this: a mark, or one that composes with the
  /// last one here (Hangul, some vowels of India). Between characters that begin something nothing else acts.
  bool is_joined_by(NfcPoint first) const {
    if (mark_class(first) != 0) return true;
    const NfcPoint last = whole().back();
    return mark_class(last) == 0 && composed({last, first}).size() == 1;
  }

  void finish(std::string_view text, size_t end, std::vector<NfcChange>& out) const {
    if (is_settled) return;
    std::string normal = spelled(whole());
    if (normal != text.substr(begin, end - begin)) out.push_back({begin, end, std::move(normal)});
  }
};

}  // namespace

std::vector<NfcChange> nfc_changes(std::string_view text) {
  const auto may_change = [](char byte) { return static_cast<uint8_t>(byte) >= kFirstMarkLead; };
  if (std::none_of(text.begin(), text.end(), may_change)) return {};
  std::vector<NfcChange> out;
  NfcCluster cluster;
  NfcPoints points;
  for (size_t at = 0; at < text.size();) {
    const CodePoint character = decode_utf8_at(text, at);
    const bool is_settled = character.value < kFirstMark;
    points.clear();
    append_decomposed(character.value, points);
    if (!cluster.points.empty() && (is_settled || !cluster.is_joined_by(points.front()))) {
      cluster.finish(text, at, out);
      cluster.begin = at;
      cluster.points.clear();
      cluster.is_settled = true;
    }
    cluster.points.insert(cluster.points.end(), points.begin(), points.end());
    cluster.is_settled = cluster.is_settled && is_settled;
    at += character.bytes;
  }
  cluster.finish(text, text.size(), out);
  return out;
}

}  // namespace lancet
