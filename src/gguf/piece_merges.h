// Merges between SentencePiece's pieces, which a GGUF file has scores of instead.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

// Types of tokens in metadata (tokenizer.ggml.token_type).
inline constexpr int64_t kNormalToken = 1, kUnknownToken = 2, kControlToken = 3, kUserToken = 4, kUnusedToken = 5,
                         kByteToken = 6;

/// Tokens by their ids.
struct GgufTokens {
  std::vector<std::string> texts;
  std::vector<double> types;
};

struct ScoredMerge {
  size_t left = 0, right = 0;  ///< ids
  double score = 0;            ///< of what they become
  int64_t left_size = 0, right_size = 0;
};

/// Is called with metadata's name, what was expected and what came; throws.
using RefuseMetadata = std::function<void(std::string_view, std::string_view, std::string_view)>;

/// Returns all pairs of pieces that are a piece together: first those of the highest score, which SentencePiece merges
/// first.
std::vector<ScoredMerge> merges_of(const GgufTokens& tokens, const std::vector<double>& scores,
                                   const RefuseMetadata& refuse);

}  // namespace lancet
