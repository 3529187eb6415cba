#include "lancet/text_metrics/word_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "ascii.h"

namespace lancet {
namespace {

/// Characters that are always words of their own.
constexpr std::array<std::string_view, 28> kAlone{";", "@", "#", "$", "%", "&", "?", "!", "*", "(", ")", "[", "]", "{",
                                                  "}", "<", ">", "«", "»", "“", "”", "‘", "’", "„", "‒", "–", "—", "―"};
/// Characters that may follow the full stop at the end of a sentence.
constexpr std::array<std::string_view, 9> kClosers{"\"", "'", ")", "]", "}", ">", "»", "”", "’"};
/// A full stop after these words ends no sentence. Single letters count as initials.
constexpr std::array<std::string_view, 28> kAbbreviations{
    "mr",  "mrs", "ms",  "dr",  "prof", "st",   "jr", "sr",  "gen", "gov", "col",  "lt",  "sgt", "sen",
    "rep", "rev", "inc", "ltd", "co",   "corp", "vs", "jan", "feb", "aug", "sept", "oct", "nov", "dec"};

struct Split {
  std::string_view whole;
  size_t at;
};
constexpr std::array<Split, 8> kContractions{
    {{"cannot", 3}, {"d'ye", 1}, {"gimme", 3}, {"gonna", 3}, {"gotta", 3}, {"lemme", 3}, {"more'n", 4}, {"wanna", 3}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// Letters beyond ASCII belong to words, too. Quotes and dashes beyond ASCII already have blanks around them.
bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte) != 0 || c == '_';
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Removes closing marks at the end of the text.
std::string_view without_closers(std::string_view text) {
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view closer : kClosers) {
      if (!text.ends_with(closer)) continue;
      text.remove_suffix(closer.size());
      cut = true;
    }
  }
  return text;
}

/// Whether a sentence ends after `chunk`, which has no blanks.
bool ends_sentence(std::string_view chunk) {
  chunk = without_closers(chunk);
  if (chunk.ends_with('?') || chunk.ends_with('!')) return true;
  if (!chunk.ends_with('.') || chunk.ends_with("..")) return false;
  chunk.remove_suffix(1);
  while (!chunk.empty() && !is_word_byte(chunk.front())) chunk.remove_prefix(1);
  const std::string word = lower(chunk.substr(chunk.rfind('-') + 1));
  const bool is_initial = !word.empty() && std::isalpha(static_cast<unsigned char>(word.back())) != 0 &&
                          (word.size() == 1 || word[word.size() - 2] == '.');
  return !is_initial && std::find(kAbbreviations.begin(), kAbbreviations.end(), word) == kAbbreviations.end();
}

std::vector<std::string_view> sentences_of(std::string_view text) {
  std::vector<std::string_view> sentences;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && !is_space(text[end])) ++end;
    const bool ends = end > at && ends_sentence(text.substr(at, end - at));
    while (end < text.size() && is_space(text[end])) ++end;
    if (!ends && end < text.size()) {
      at = end;
      continue;
    }
    sentences.push_back(text.substr(begin, end - begin));
    begin = at = end;
  }
  return sentences;
}

/// Puts blanks around everything in a sentence that is a word of its own.
class Spacer {
 public:
  explicit Spacer(std::string_view sentence) : text_(sentence) {}

  std::string spaced() {
    while (at_ < text_.size()) step();
    return std::move(out_);
  }

 private:
  void step() {
    const char c = text_[at_];
    for (const std::string_view alone : kAlone)
      if (rest().starts_with(alone)) return put_apart(alone, alone.size());
    if (c == '"') return put_apart(opens_quote() || at_ == 0 ? "``" : "''", 1);
    if (rest().starts_with("''")) return put_apart(opens_quote() ? "``" : "''", 2);
    if (c == '`') return put_run('`');
    if (rest().starts_with("--")) return put_apart("--", 2);
    if (rest().starts_with("..")) return put_run('.');
    if (c == '.' && at_ > 0 && ends_after(at_ + 1)) return put_apart(".", 1);
    if ((c == ',' || c == ':') && (at_ + 1 == text_.size() || !is_digit(text_[at_ + 1])))
      return put_apart(rest().substr(0, 1), 1);
    out_ += c;
    if (c == '\'' && opens_single()) out_ += ' ';
    ++at_;
  }

  std::string_view rest() const { return text_.substr(at_); }

  void put_apart(std::string_view word, size_t taken) {
    out_ += ' ';
    out_ += word;
    out_ += ' ';
    at_ += taken;
  }

  void put_run(char c) {
    const size_t end = std::min(text_.find_first_not_of(c, at_), text_.size());
    put_apart(text_.substr(at_, end - at_), end - at_);
  }

  bool opens_quote() const {
    constexpr std::array<std::string_view, 10> kOpeners{" ", "(", "[", "{", "<", "«", "“", "‘", "„", "`"};
    const std::string_view before = text_.substr(0, at_);
    return std::any_of(kOpeners.begin(), kOpeners.end(),
                       [&](std::string_view opener) { return before.ends_with(opener); });
  }

  /// Whether only blanks and closing marks follow.
  bool ends_after(size_t at) const {
    std::string_view left = text_.substr(at);
    for (size_t size = left.size() + 1; left.size() < size;) {
      size = left.size();
      while (!left.empty() && is_space(left.back())) left.remove_suffix(1);
      left = without_closers(left);
    }
    return left.empty();
  }

  /// Whether the current apostrophe begins a quotation: no letter before it, a letter after it, and no clitic ('s,
  /// 'll).
  bool opens_single() const {
    if (out_.size() > 1 && is_word_byte(out_[out_.size() - 2])) return false;
    size_t end = at_ + 1;
    while (end < text_.size() && is_word_byte(text_[end])) ++end;
    const std::string word = lower(text_.substr(at_ + 1, end - at_ - 1));
    constexpr std::array<std::string_view, 8> kClitics{"re", "ve", "ll", "m", "t", "s", "d", "n"};
    return !word.empty() && std::find(kClitics.begin(), kClitics.end(), word) == kClitics.end();
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
};

/// Removes the ending of `word` if it is one of `endings`. Returns it; empty if there is none.
template <size_t n>
std::string_view cut_ending(std::string_view& word, const std::array<std::string_view, n>& endings) {
  for (const std::string_view ending : endings) {
    if (word.size() <= ending.size() || !word.ends_with(ending)) continue;
    const std::string_view before = word.substr(0, word.size() - ending.size());
    if (before.back() == '\'') continue;
    word = before;
    return ending;
  }
  return {};
}

void add_word(std::string_view word, std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 7> kShort{"'s", "'S", "'m", "'M", "'d", "'D", "'"};
  constexpr std::array<std::string_view, 8> kLong{"'ll", "'LL", "'re", "'RE", "'ve", "'VE", "n't", "N'T"};
  const std::string_view last = cut_ending(word, kShort);
  const std::string_view second = cut_ending(word, kLong);
  const std::string plain = lower(word);
  size_t at = 0;
  for (const Split& contraction : kContractions)
    if (plain == contraction.whole) at = contraction.at;
  if (at > 0) words.emplace_back(word.substr(0, at));
  words.emplace_back(word.substr(at));
  if (!second.empty()) words.emplace_back(second);
  if (!last.empty()) words.emplace_back(last);
}

}  // namespace

std::vector<std::string> word_tokens(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view sentence : sentences_of(text)) {
    const std::string spaced = Spacer(sentence).spaced();
    for (size_t at = 0; at < spaced.size();) {
      size_t end = at;
      while (end < spaced.size() && !is_space(spaced[end])) ++end;
      if (end > at) add_word(std::string_view(spaced).substr(at, end - at), words);
      at = end + 1;
    }
  }
  return words;
}

}  // namespace lancet
