#include "unigram_model.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"

namespace lancet {

/// The last step of the best path to a position: the piece `id`, which begins at `begin`.
struct UnigramModel::Step {
  TokenId id = 0;
  double score = 0;
  size_t begin = 0;
  bool is_reached = false;

  void offer(TokenId by, size_t from, double total) {
    if (is_reached && total <= score) return;
    *this = {by, total, from, true};
  }
};

UnigramModel::UnigramModel(UnigramSpec spec, std::string where) : spec_(std::move(spec)), where_(std::move(where)) {
  // the score of an unknown character is below that of the least probable piece by this
  constexpr double kPenalty = 10;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [piece, score] : spec_.pieces) least = std::min(least, score);
  unk_score_ = least - kPenalty;

  std::vector<TokenId> all(spec_.pieces.size());
  std::iota(all.begin(), all.end(), TokenId{0});
  std::sort(all.begin(), all.end(), [&](TokenId a, TokenId b) {
    const int order = text_of(a).compare(text_of(b));
    return order != 0 ? order < 0 : a < b;
  });
  for (const TokenId id : all) {
    if (!sorted_.empty() && text_of(sorted_.back()) == text_of(id)) sorted_.pop_back();
    sorted_.push_back(id);
  }
  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte) byte_tokens_[byte] = id_of(byte_piece(byte));
}

std::optional<TokenId> UnigramModel::id_of(std::string_view piece) const {
  const auto found =
      std::partition_point(sorted_.begin(), sorted_.end(), [&](TokenId id) { return text_of(id) < piece; });
  if (found == sorted_.end() || text_of(*found) != piece) return std::nullopt;
  return *found;
}

void UnigramModel::for_each_piece(const std::function<void(const std::string& piece, TokenId id)>& use) const {
  for (size_t id = 0; id < spec_.pieces.size(); ++id) use(spec_.pieces[id].first, static_cast<TokenId>(id));
}

/// Offers each piece that begins at `begin` to the position at which it ends. The pieces that begin like the word at
/// this position are a range of the sorted pieces, which becomes smaller with each byte.
void UnigramModel::extend(std::string_view word, size_t begin, std::vector<Step>& best) const {
  const double so_far = best[begin].score;
  const size_t first_character = utf8_bytes(word[begin]);
  bool has_character = false;
  auto low = sorted_.begin(), high = sorted_.end();
  for (size_t length = 1; begin + length <= word.size(); ++length) {
    const size_t at = length - 1;
    const auto byte = static_cast<uint8_t>(word[begin + at]);
    const auto byte_of = [&](TokenId id) { return static_cast<uint8_t>(text_of(id)[at]); };
    low = std::partition_point(low, high, [&](TokenId id) { return text_of(id).size() <= at || byte_of(id) < byte; });
    high = std::partition_point(low, high, [&](TokenId id) { return byte_of(id) == byte; });
    if (low == high) break;
    if (text_of(*low).size() != length) continue;
    best[begin + length].offer(*low, begin, so_far + score_of(*low));
    has_character = has_character || length == first_character;
  }
  if (has_character) return;
  if (!spec_.unk)
    throw TokenizerError(cat(where_, ": no piece has the character \"", word.substr(begin, first_character),
                             "\", and model.unk_id names no token for unknown ones; write the text without it"));
  best[begin + first_character].offer(*spec_.unk, begin, so_far + unk_score_);
}

std::vector<UnigramModel::Step> UnigramModel::best_path(std::string_view word) const {
  std::vector<Step> best(word.size() + 1);
  for (size_t begin = 0; begin < word.size(); begin += utf8_bytes(word[begin])) extend(word, begin, best);
  std::vector<Step> path;
  for (size_t end = word.size(); end > 0; end = path.back().begin) path.push_back(best[end]);
  std::reverse(path.begin(), path.end());
  return path;
}

/// Appends a piece, or a row of unknown characters: together they may be a piece, else they fall back to bytes.
void UnigramModel::append_stretch(std::string_view word, TextPiece stretch, std::vector<WordToken>& out) const {
  const std::string_view text = word.substr(stretch.begin, stretch.end - stretch.begin);
  const auto token_of = [&](char byte) { return byte_tokens_[static_cast<uint8_t>(byte)]; };
  if (const auto id = id_of(text)) {
    out.push_back({*id, stretch.begin, stretch.end});
  } else if (spec_.byte_fallback &&
             std::all_of(text.begin(), text.end(), [&](char byte) { return token_of(byte).has_value(); })) {
    for (size_t at = stretch.begin; at < stretch.end;) {
      const size_t end = at + utf8_bytes(word[at]);
      for (const char byte : word.substr(at, end - at)) out.push_back({*token_of(byte), at, end});
      at = end;
    }
  } else {
    out.push_back({*spec_.unk, stretch.begin, stretch.end});
  }
}

void UnigramModel::tokenize(std::string_view word, std::vector<WordToken>& out) const {
  std::optional<TextPiece> unknown;
  const auto flush = [&] {
    if (unknown) append_stretch(word, *unknown, out);
    unknown.reset();
  };
  size_t begin = 0;
  const std::vector<Step> path = best_path(word);
  for (size_t i = 0; i < path.size(); ++i) {
    const size_t end = i + 1 < path.size() ? path[i + 1].begin : word.size();
    if (path[i].id == spec_.unk) {
      unknown = TextPiece{unknown ? unknown->begin : begin, end};
    } else {
      flush();
      append_stretch(word, {begin, end}, out);
    }
    begin = end;
  }
  flush();
}

}  // namespace lancet
