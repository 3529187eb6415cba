#include "words.h"

#include <utility>

namespace lancet {
namespace {

/// Changes each word separately.
template <typename Rewrite>
void rewrite_each(WordsOfText& cut, const Rewrite& rewrite) {
  const size_t size = cut.text.text().size();
  if (cut.words.size() == 1 && cut.words[0].begin == 0 && cut.words[0].end == size) {  // the usual case
    rewrite(cut.text);
    cut.words[0].end = cut.text.text().size();
    return;
  }
  NormalizedText whole = cut.text.slice(0, 0);
  for (TextPiece& word : cut.words) {
    NormalizedText part = cut.text.slice(word.begin, word.end);
    rewrite(part);
    const size_t begin = whole.text().size();
    whole.append(part);
    word = {begin, whole.text().size()};
  }
  cut.text = std::move(whole);
}

void cut_step(const SplitPattern& step, WordsOfText& cut) { cut.words = cut_pieces(cut.text.text(), cut.words, step); }

void cut_step(const PrefixSpaceStep&, WordsOfText& cut) {
  rewrite_each(cut, [](NormalizedText& word) {
    if (!word.text().starts_with(' ')) word.prepend(" ");
  });
}

void cut_step(const MetaspaceStep& step, WordsOfText& cut) {
  const TextPattern space = TextPattern::literal(" ");
  rewrite_each(cut, [&](NormalizedText& word) {
    word.replace(space.matches(word.text()), step.replacement);
    const bool prepends =
        step.prepend == PrependScheme::kAlways || (step.prepend == PrependScheme::kFirst && word.origin_begin() == 0);
    if (prepends && !word.text().starts_with(step.replacement)) word.prepend(step.replacement);
  });
}

void cut_step(const SpellBytesStep&, WordsOfText& cut) {
  rewrite_each(cut, [](NormalizedText& word) { word.spell(); });
}

}  // namespace

WordsOfText cut_words(NormalizedText text, std::span<const PreTokenizerStep> steps) {
  const size_t size = text.text().size();
  WordsOfText cut{std::move(text), {}};
  if (size == 0) return cut;
  cut.words.push_back({0, size});
  for (const PreTokenizerStep& step : steps) std::visit([&](const auto& kind) { cut_step(kind, cut); }, step);
  return cut;
}

}  // namespace lancet
