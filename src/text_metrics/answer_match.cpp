#include "lancet/text_metrics/answer_match.h"

#include <algorithm>
#include <cctype>

#include "ascii.h"

namespace lancet {
namespace {

bool is_article(std::string_view word) { return word == "a" || word == "an" || word == "the"; }

/// Whether `stands` is true for one of the answers that is not empty, normalised with a space on both sides.
template <typename Stands>
bool any_answer(std::span<const std::string> answers, Stands stands) {
  return std::any_of(answers.begin(), answers.end(), [&](const std::string& answer) {
    const std::string wanted = normalized_answer(answer);
    return !wanted.empty() && stands(" " + wanted + " ");
  });
}

}  // namespace

std::string normalized_answer(std::string_view text) {
  std::string out, word;
  const auto end_word = [&] {
    if (!word.empty() && !is_article(word)) out += (out.empty() ? "" : " ") + word;
    word.clear();
  };
  for (const char c : text) {
    if (is_space(c))
      end_word();
    else if (!is_punctuation(c))
      word += is_ascii(c) ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : c;
  }
  end_word();
  return out;
}

std::string_view first_statement(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  for (size_t i = begin; i < text.size(); ++i) {
    const bool stops = text[i] == '.' || text[i] == '!' || text[i] == '?';
    if (text[i] == '\n' || (stops && (i + 1 == text.size() || is_space(text[i + 1]))))
      return text.substr(begin, i - begin);
  }
  return text.substr(begin);
}

bool is_exactly(std::string_view text, std::span<const std::string> answers) {
  return is_wholly(first_statement(text), answers);
}

bool is_wholly(std::string_view text, std::span<const std::string> answers) {
  const std::string padded = " " + normalized_answer(text) + " ";
  return any_answer(answers, [&](const std::string& wanted) { return padded == wanted; });
}

bool begins_with(std::string_view text, std::span<const std::string> answers) {
  const std::string padded = " " + normalized_answer(text) + " ";
  return any_answer(answers, [&](const std::string& wanted) { return padded.starts_with(wanted); });
}

bool contains(std::string_view text, std::span<const std::string> answers) {
  const std::string padded = " " + normalized_answer(text) + " ";
  return any_answer(answers, [&](const std::string& wanted) { return padded.find(wanted) != std::string::npos; });
}

}  // namespace lancet
