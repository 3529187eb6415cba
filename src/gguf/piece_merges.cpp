// Sources: llama.cpp, src/llama-vocab.cpp (how SentencePiece's pieces are merged); transformers,
// convert_slow_tokenizer.py (merges of pieces that have scores).
#include "piece_merges.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr size_t kLongestPiece = 1000;  // bytes; each of its cuts is looked at
/// Bytes of all merges as text. Those of Gemma, with 262,144 pieces, take about 4 MB.
constexpr size_t kMostMergedBytes = size_t{1} << 26;

}  // namespace

std::vector<ScoredMerge> merges_of(const GgufTokens& tokens, const std::vector<double>& scores,
                                   const RefuseMetadata& refuse) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < tokens.texts.size(); ++id) ids.emplace(tokens.texts[id], id);
  std::vector<ScoredMerge> merges, own;
  size_t merged_bytes = 0;
  for (size_t id = 0; id < tokens.texts.size(); ++id) {
    const std::string_view text = tokens.texts[id];
    const auto type = static_cast<int64_t>(tokens.types[id]);
    if (type == kControlToken || type == kUnknownToken) continue;
    if (!std::isfinite(scores[id])) refuse("tokenizer.ggml.scores", "finite numbers", cat(scores[id]));
    if (text.size() > kLongestPiece)
      refuse("tokenizer.ggml.tokens", cat("pieces of at most ", kLongestPiece, " bytes"), cat("one of ", text.size()));
    own.clear();
    const int64_t size = std::ranges::count_if(text, begins_character);
    int64_t before = 0;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if (!begins_character(text[cut])) continue;
      ++before;
      const auto left = ids.find(text.substr(0, cut)), right = ids.find(text.substr(cut));
      if (left != ids.end() && right != ids.end())
        own.push_back({left->second, right->second, scores[id], before, size - before});
    }
    merged_bytes += own.size() * text.size();
    if (merged_bytes > kMostMergedBytes)
      refuse("tokenizer.ggml.tokens", cat("pieces whose merges have at most ", kMostMergedBytes, " bytes"), "more");
    std::ranges::sort(own, {}, [](const ScoredMerge& merge) { return std::pair(merge.left, merge.right); });
    merges.insert(merges.end(), own.begin(), own.end());
  }
  std::ranges::stable_sort(merges, [](const ScoredMerge& a, const ScoredMerge& b) {
    return std::tie(a.score, a.left_size, a.right_size) > std::tie(b.score, b.left_size, b.right_size);
  });
  return merges;
}

}  // namespace lancet
