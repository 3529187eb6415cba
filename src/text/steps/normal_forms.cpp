#include "normal_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "lancet/tokenizer_files/json_node.h"

namespace lancet {
namespace {

using FormPoint = utf8proc_int32_t;
using FormPoints = std::vector<FormPoint>;

bool composes(NormalForm form) { return form == NormalForm::kNfc || form == NormalForm::kNfkc; }
bool is_compatible(NormalForm form) { return form == NormalForm::kNfkc || form == NormalForm::kNfkd; }

/// Returns the first character that needs a check. Characters below it already have the form, and join no character
/// before them: for NFC all characters below the first mark, for the other forms ASCII.
char32_t first_to_look_at(NormalForm form) { return form == NormalForm::kNfc ? 0x300 : 0x80; }
uint8_t lead_to_look_at(NormalForm form) { return form == NormalForm::kNfc ? 0xCC : 0x80; }

/// Returns 0 for a character that begins a sequence. Other characters are sorted by their class after it.
int mark_class(FormPoint point) { return utf8proc_get_property(point)->combining_class; }

void append_decomposed(char32_t character, NormalForm form, FormPoints& out) {
  std::array<FormPoint, 32> points{};  // the longest decomposition has 18
  int boundary = 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (is_compatible(form) ? UTF8PROC_COMPAT : 0));
  const auto count =
      utf8proc_decompose_char(static_cast<FormPoint>(character), points.data(), points.size(), options, &boundary);
  out.insert(out.end(), points.begin(), points.begin() + count);
}

FormPoints composed(FormPoints points) {
  const auto size = static_cast<utf8proc_ssize_t>(points.size());
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  points.resize(static_cast<size_t>(utf8proc_normalize_utf32(points.data(), size, options)));
  return points;
}

/// Sorts the marks after a character by their classes. Marks of the same class keep their order.
void order_marks(FormPoints& points) {
  const auto is_mark = [](FormPoint point) { return mark_class(point) != 0; };
  for (auto begin = points.begin(); begin != points.end();) {
    begin = std::find_if(begin, points.end(), is_mark);
    const auto end = std::find_if_not(begin, points.end(), is_mark);
    std::stable_sort(begin, end, [](FormPoint a, FormPoint b) { return mark_class(a) < mark_class(b); });
    begin = end;
  }
}

std::string spelled(const FormPoints& points) {
  std::string out;
  for (const FormPoint point : points) {
    std::array<utf8proc_uint8_t, 4> bytes{};
    const auto count = utf8proc_encode_char(point, bytes.data());
    out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(count));
  }
  return out;
}

/// A character and the characters that join it, decomposed.
struct FormCluster {
  NormalForm form = NormalForm::kNfc;
  size_t begin = 0;
  FormPoints points = {};
  bool is_settled = true;  ///< it is one character below first_to_look_at()

  FormPoints whole() const {
    FormPoints ordered = points;
    order_marks(ordered);
    return composes(form) ? composed(std::move(ordered)) : ordered;
  }

  /// Whether a character that decomposes to `first` and more belongs to this cluster: it is a mark, or composes with
  /// the last character here (Hangul, some Indian vowels). Other characters do not act on each other.
  bool is_joined_by(FormPoint first) const {
    if (mark_class(first) != 0) return true;
    if (!composes(form)) return false;
    const FormPoint last = whole().back();
    return mark_class(last) == 0 && composed({last, first}).size() == 1;
  }

  void finish(std::string_view text, size_t end, std::vector<TextChange>& out) const {
    if (is_settled) return;
    std::string normal = spelled(whole());
    if (normal != text.substr(begin, end - begin)) out.push_back({begin, end, std::move(normal)});
  }
};

}  // namespace

std::vector<TextChange> normal_form_changes(std::string_view text, NormalForm form) {
  const auto may_change = [&](char byte) { return static_cast<uint8_t>(byte) >= lead_to_look_at(form); };
  if (std::none_of(text.begin(), text.end(), may_change)) return {};
  std::vector<TextChange> out;
  FormCluster cluster{.form = form};
  FormPoints points;
  for (size_t at = 0; at < text.size();) {
    const CodePoint character = decode_utf8_at(text, at);
    const bool is_settled = character.value < first_to_look_at(form);
    points.clear();
    append_decomposed(character.value, form, points);
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
