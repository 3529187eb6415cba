#include "lancet/text_metrics/tfidf.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "lancet/checkpoint/npy.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/json_file.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

constexpr size_t kShortestWord = 2;

struct Range {
  char32_t first, last;
};

/// Ranges beyond ASCII without letters: marks, signs, punctuation, symbols. Everything else beyond ASCII counts as a
/// letter.
constexpr Range kNoLetters[] = {{0x80, 0xa9},     {0xab, 0xb1},     {0xb4, 0xb4},     {0xb6, 0xb8},
                                {0xbb, 0xbb},     {0xbf, 0xbf},     {0xd7, 0xd7},     {0xf7, 0xf7},
                                {0x300, 0x36f},   {0x2000, 0x206f}, {0x20a0, 0x20ff}, {0x2190, 0x245f},
                                {0x2500, 0x2775}, {0x2794, 0x2bff}, {0x3000, 0x3004}, {0x3008, 0x3020},
                                {0xfe00, 0xfe0f}, {0xff00, 0xff0f}, {0xfffd, 0xfffd}};
/// Capital letters at a fixed distance before their small letters.
struct Capitals {
  Range range;
  char32_t distance;
};
constexpr Capitals kCapitals[] = {{{'A', 'Z'}, 32},     {{0xc0, 0xd6}, 32},   {{0xd8, 0xde}, 32},
                                  {{0x391, 0x3a9}, 32}, {{0x400, 0x40f}, 80}, {{0x410, 0x42f}, 32}};
/// Capital letters directly before their small letters, at even or odd code points.
struct Pairs {
  Range range;
  char32_t parity;
};
constexpr Pairs kPairs[] = {{{0x100, 0x12f}, 0}, {{0x132, 0x137}, 0}, {{0x139, 0x148}, 1}, {{0x14a, 0x177}, 0},
                            {{0x179, 0x17e}, 1}, {{0x460, 0x481}, 0}, {{0x48a, 0x4bf}, 0}, {{0x4d0, 0x52f}, 0}};

bool in(char32_t c, Range range) { return c >= range.first && c <= range.last; }

bool is_word_letter(char32_t c) {
  if (c < 0x80) return in(c, {'0', '9'}) || in(c, {'A', 'Z'}) || in(c, {'a', 'z'}) || c == '_';
  for (const Range& range : kNoLetters)
    if (in(c, range)) return false;
  return true;
}

char32_t lower_letter(char32_t c) {
  for (const Capitals& capitals : kCapitals)
    if (in(c, capitals.range)) return c + capitals.distance;
  for (const Pairs& pairs : kPairs)
    if (in(c, pairs.range) && c % 2 == pairs.parity) return c + 1;
  return c;
}

/// Reads a code point of valid UTF-8.
std::pair<char32_t, size_t> code_point_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  char32_t value = lead & (0xffU >> (size + 1));
  for (size_t i = 1; i < size && at + i < text.size(); ++i)
    value = (value << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  return {value, std::min(size, text.size() - at)};
}

void append(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned kLeads[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kLeads[more] | (c >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80U | ((c >> (6 * i)) & 0x3fU));
}

std::map<std::string, int64_t> word_counts(std::string_view text) {
  std::map<std::string, int64_t> counts;
  std::string word;
  size_t letters = 0;
  const auto end_word = [&] {
    if (letters >= kShortestWord) ++counts[word];
    word.clear();
    letters = 0;
  };
  for (size_t at = 0; at < text.size();) {
    const auto [c, bytes] = code_point_at(text, at);
    at += bytes;
    if (!is_word_letter(c)) {
      end_word();
      continue;
    }
    append(word, lower_letter(c));
    ++letters;
  }
  end_word();
  return counts;
}

double dot(const std::map<size_t, double>& a, const std::map<size_t, double>& b) {
  double sum = 0;
  for (const auto& [column, weight] : a)
    if (const auto other = b.find(column); other != b.end()) sum += weight * other->second;
  return sum;
}

}  // namespace

TfIdf TfIdf::open(const std::filesystem::path& idf, const std::filesystem::path& vocabulary) {
  std::vector<double> numbers = read_npy_numbers(idf);
  const Json words = read_json_file(vocabulary, "vocabulary");
  if (!words.is_object())
    throw ConfigError(cat(vocabulary.string(), ": expected a JSON object from words to columns: {\"paris\": 17, ...}"));
  std::map<std::string, size_t> columns;
  for (const auto& [word, column] : words.items()) {
    if (!column.is_number_unsigned() || column.get<uint64_t>() >= numbers.size())
      throw ConfigError(cat(vocabulary.string(), ": '", word, "': ", excerpt(column.dump(), 40),
                            ": expected a column of ", idf.string(), ", from 0 to ", numbers.size(),
                            " - 1: take both files from one place"));
    columns.emplace(word, column.get<size_t>());
  }
  return {std::move(numbers), std::move(columns)};
}

std::map<size_t, double> TfIdf::weights(std::string_view text) const {
  std::map<size_t, double> weights;
  for (const auto& [word, count] : word_counts(text))
    if (const auto at = columns_.find(word); at != columns_.end())
      weights[at->second] += static_cast<double>(count) * idf_[at->second];
  return weights;
}

std::optional<double> TfIdf::cosine(std::string_view a, std::string_view b) const {
  const std::map<size_t, double> of_a = weights(a), of_b = weights(b);
  const double norms = std::sqrt(dot(of_a, of_a) * dot(of_b, of_b));
  if (norms == 0) return std::nullopt;
  return dot(of_a, of_b) / norms;
}

}  // namespace lancet
