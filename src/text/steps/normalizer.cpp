#include "normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"
#include "normal_forms.h"

namespace lancet {
namespace {

using TextChanges = std::vector<TextChange>;

std::string utf8_of(char32_t point) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), bytes.data());
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(count)};
}

utf8proc_category_t category_of(char32_t point) { return utf8proc_category(static_cast<utf8proc_int32_t>(point)); }

bool is_within(char32_t point, char32_t first, char32_t last) { return point >= first && point <= last; }

/// Only "İ" has two characters in lower case.
std::string lower_case(char32_t point) {
  if (point == 0x130) return "i\xCC\x87";
  return utf8_of(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point))));
}

std::string after_nmt(char32_t point) {
  const bool is_control = is_within(point, 0x01, 0x08) || point == 0x0B || is_within(point, 0x0E, 0x1F) ||
                          point == 0x7F || point == 0x8F || point == 0x9F;
  if (is_control) return "";
  const bool is_space = point == 0x09 || point == 0x0A || point == 0x0C || point == 0x0D || point == 0x1680 ||
                        is_within(point, 0x200B, 0x200F) || point == 0x2028 || point == 0x2029 || point == 0x2581 ||
                        point == 0xFEFF || point == 0xFFFD;
  return is_space ? " " : utf8_of(point);
}

/// Whether it is a control character in Unicode 8. Format characters that were added later are not.
bool is_bert_control(char32_t point) {
  if (point == '\t' || point == '\n' || point == '\r') return false;
  const utf8proc_category_t category = category_of(point);
  if (category == UTF8PROC_CATEGORY_CF)
    return !is_within(point, 0x890, 0x891) && point != 0x8E2 && point != 0x110CD && !is_within(point, 0x13430, 0x1343F);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CO;
}

std::string cleaned(char32_t point) {
  if (point == 0 || point == 0xFFFD || is_bert_control(point)) return "";
  return is_white_space(point) ? " " : utf8_of(point);
}

bool is_ideograph(char32_t point) {
  return is_within(point, 0x4E00, 0x9FFF) || is_within(point, 0x3400, 0x4DBF) || is_within(point, 0x20000, 0x2A6DF) ||
         is_within(point, 0x2A700, 0x2B73F) || is_within(point, 0x2B740, 0x2B81F) ||
         is_within(point, 0x2B920, 0x2CEAF) || is_within(point, 0xF900, 0xFAFF) || is_within(point, 0x2F800, 0x2FA1F);
}

std::string after_step(CharacterStep step, char32_t point) {
  switch (step) {
    case CharacterStep::kLowercase:
      return lower_case(point);
    case CharacterStep::kRemoveMarks: {
      const utf8proc_category_t category = category_of(point);
      const bool is_mark =
          category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
      return is_mark ? "" : utf8_of(point);
    }
    case CharacterStep::kRemoveNonSpacingMarks:
      return category_of(point) == UTF8PROC_CATEGORY_MN ? "" : utf8_of(point);
    case CharacterStep::kNmt:
      return after_nmt(point);
    case CharacterStep::kCleanText:
      return cleaned(point);
    case CharacterStep::kSpaceIdeographs:
      return is_ideograph(point) ? cat(" ", utf8_of(point), " ") : utf8_of(point);
  }
  return utf8_of(point);
}

void normalize_step(CharacterStep step, NormalizedText& text) {
  TextChanges changes;
  for (size_t at = 0; at < text.text().size();) {
    const CodePoint character = decode_utf8_at(text.text(), at);
    std::string after = after_step(step, character.value);
    const size_t end = at + character.bytes;
    if (after != std::string_view(text.text()).substr(at, character.bytes))
      changes.push_back({at, end, std::move(after)});
    at = end;
  }
  text.change(changes);
}

void normalize_step(NormalForm form, NormalizedText& text) { text.change(normal_form_changes(text.text(), form)); }

void normalize_step(const PrependStep& step, NormalizedText& text) { text.prepend(step.text); }

void normalize_step(const ReplaceStep& step, NormalizedText& text) {
  if (!text.text().empty()) text.replace(step.pattern.matches(text.text()), step.content);
}

void normalize_step(const SpellBytesStep&, NormalizedText& text) { text.spell(); }

void normalize_step(const TrimStep& step, NormalizedText& text) {
  const std::string& all = text.text();
  size_t begin = 0, end = all.size();
  while (step.left && begin < end) {
    const CodePoint next = decode_utf8_at(all, begin);
    if (!is_white_space(next.value)) break;
    begin += next.bytes;
  }
  while (step.right && begin < end) {
    size_t lead = end - 1;
    while (!begins_character(all[lead])) --lead;
    if (!is_white_space(decode_utf8_at(all, lead).value)) break;
    end = lead;
  }
  if (begin > 0 || end < all.size()) text = text.slice(begin, end);
}

/// Returns the end of the grapheme that begins at `at`.
size_t grapheme_end(std::string_view text, size_t at) {
  CodePoint character = decode_utf8_at(text, at);
  utf8proc_int32_t state = 0;
  for (size_t next = at + character.bytes; next < text.size();) {
    const CodePoint following = decode_utf8_at(text, next);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(character.value),
                                         static_cast<utf8proc_int32_t>(following.value), &state) != 0)
      return next;
    character = following;
    next += following.bytes;
  }
  return text.size();
}

/// A short grapheme is replaced as a whole if its beginning is in the map. Otherwise its characters are replaced one by
/// one.
void normalize_step(const PrecompiledStep& step, NormalizedText& text) {
  constexpr size_t kShort = 6;
  const std::string_view all = text.text();
  TextChanges changes;
  const auto replaces = [&](size_t begin, size_t end) {
    const std::string_view part = all.substr(begin, end - begin);
    const auto replacement = step.map->replacement(part);
    if (replacement && *replacement != part) changes.push_back({begin, end, std::string(*replacement)});
    return replacement.has_value();
  };
  for (size_t at = 0; at < all.size();) {
    const size_t end = grapheme_end(all, at);
    if (end - at < kShort && replaces(at, end)) {
      at = end;
      continue;
    }
    while (at < end) {
      const size_t next = at + utf8_bytes(all[at]);
      replaces(at, next);
      at = next;
    }
  }
  text.change(changes);
}

}  // namespace

void normalize(std::span<const NormalizerStep> steps, NormalizedText& text) {
  for (const NormalizerStep& step : steps) std::visit([&](const auto& kind) { normalize_step(kind, text); }, step);
}

}  // namespace lancet
