#include "lancet/text_metrics/overlap.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ascii.h"

namespace lancet {
namespace {

constexpr size_t kLongestRun = 4;

std::vector<std::string> rouge_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (is_ascii(c) && std::isalnum(static_cast<unsigned char>(c)) != 0)
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

size_t common_length(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<size_t> row(b.size() + 1);  // for a's words so far
  for (const std::string& word : a) {
    size_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = word == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

/// Returns the positions at which UTF-8 characters begin, and the end of the text. Bytes that belong to no character
/// count to the one before.
std::vector<size_t> character_places(std::string_view text) {
  std::vector<size_t> places;
  for (size_t i = 0; i < text.size(); ++i)
    if (i == 0 || (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) places.push_back(i);
  places.push_back(text.size());
  return places;
}

using RunCounts = std::unordered_map<std::string_view, int64_t>;

RunCounts count_runs(std::string_view text, const std::vector<size_t>& places, size_t length) {
  RunCounts counts;
  for (size_t i = 0; i + length < places.size(); ++i) ++counts[text.substr(places[i], places[i + length] - places[i])];
  return counts;
}

}  // namespace

std::optional<RougeL> rouge_l(std::string_view text, std::string_view reference) {
  const std::vector<std::string> words = rouge_words(text), wanted = rouge_words(reference);
  if (wanted.empty()) return std::nullopt;
  const auto common = static_cast<double>(common_length(words, wanted));
  if (common == 0) return RougeL{};
  const double precision = common / static_cast<double>(words.size());
  const double recall = common / static_cast<double>(wanted.size());
  return RougeL{precision, recall, 2 * precision * recall / (precision + recall)};
}

double character_bleu(std::string_view text, std::string_view reference) {
  const std::vector<size_t> places = character_places(text), wanted_places = character_places(reference);
  const auto length = static_cast<double>(places.size() - 1), wanted = static_cast<double>(wanted_places.size() - 1);
  double sum = 0;
  for (size_t n = 1; n <= kLongestRun; ++n) {
    const RunCounts counts = count_runs(text, places, n), allowed = count_runs(reference, wanted_places, n);
    int64_t all = 0, common = 0;
    for (const auto& [run, count] : counts) {
      all += count;
      if (const auto found = allowed.find(run); found != allowed.end()) common += std::min(count, found->second);
    }
    if (common == 0) return 0;
    sum += std::log(static_cast<double>(common) / static_cast<double>(all)) / kLongestRun;
  }
  return std::exp(sum + (length < wanted ? 1 - wanted / length : 0));
}

}  // namespace lancet
