#include "bpe_model.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"

namespace lancet {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

/// Ids are below 2^31 (the parser checks this).
uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

}  // namespace

struct BpeModel::Symbol {
  WordToken token;
  size_t previous = kNone;
  size_t next = kNone;
  bool live = true;
};

struct BpeModel::Candidate {
  int64_t rank = 0;
  size_t at = 0;  ///< index of the left symbol
  TokenId merged = 0;
  /// A priority queue returns its largest element first: here the lowest rank, and among these the leftmost.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
};

/// The merging of one word: a queue of candidates, and a linked list of symbols.
class BpeModel::Merging {
 public:
  Merging(const BpeModel& model, const std::vector<WordToken>& tokens) : model_(model) {
    symbols_.reserve(tokens.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      symbols_.push_back({tokens[i], i > 0 ? i - 1 : kNone, i + 1 < tokens.size() ? i + 1 : kNone});
    }
    for (size_t i = 0; i + 1 < symbols_.size(); ++i) propose(i);
  }

  void run() {
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      if (still_valid(candidate)) apply(candidate);
    }
  }

  void append_to(std::vector<WordToken>& out) const {
    for (size_t i = symbols_.empty() ? kNone : 0; i != kNone; i = symbols_[i].next) out.push_back(symbols_[i].token);
  }

 private:
  void propose(size_t left) {
    const Merge* merge = model_.find_merge(symbols_[left].token.id, symbols_[symbols_[left].next].token.id);
    if (merge != nullptr) queue_.push({merge->rank, left, merge->merged});
  }

  /// A candidate is outdated if its symbols have been merged with others. As in Hugging Face, the results are compared
  /// and not the pairs: if another pair is now in this place that gives the same token, ids depend on it.
  bool still_valid(const Candidate& candidate) const {
    const Symbol& left = symbols_[candidate.at];
    if (!left.live || left.next == kNone) return false;
    const Merge* merge = model_.find_merge(left.token.id, symbols_[left.next].token.id);
    return merge != nullptr && merge->merged == candidate.merged;
  }

  void apply(const Candidate& candidate) {
    Symbol& left = symbols_[candidate.at];
    Symbol& right = symbols_[left.next];
    left.token.id = candidate.merged;
    left.token.end = right.token.end;
    right.live = false;
    left.next = right.next;
    if (left.next != kNone) symbols_[left.next].previous = candidate.at;
    if (left.previous != kNone) propose(left.previous);
    if (left.next != kNone) propose(candidate.at);
  }

  const BpeModel& model_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

BpeModel::BpeModel(BpeSpec spec, const std::string& where) : spec_(std::move(spec)) {
  const auto require = [&](std::string_view piece, const auto& role) {  // the role's text is only made for the message
    const auto id = id_of(piece);
    if (!id) throw TokenizerError(cat(where, ": ", role(), ": the piece \"", piece, "\" is not in model.vocab"));
    return *id;
  };
  if (spec_.unk_token) unk_ = require(*spec_.unk_token, [] { return "model.unk_token"; });
  int64_t rank = 0;
  const auto role = [&] { return cat("model.merges[", rank, "]"); };
  merges_.reserve(spec_.merges.size());
  for (const auto& [left, right] : spec_.merges) {
    // If a pair occurs twice, its later rank is used, as in Hugging Face.
    if (!right.starts_with(spec_.continuing_subword_prefix))
      throw TokenizerError(cat(where, ": ", role(), ": \"", right,
                               "\" does not begin with the continuing_subword_prefix \"",
                               spec_.continuing_subword_prefix, "\""));
    const std::string merged = left + right.substr(spec_.continuing_subword_prefix.size());
    merges_[pair_key(require(left, role), require(right, role))] = {rank, require(merged, role)};
    ++rank;
  }
  spec_.merges = {};
  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte) byte_tokens_[byte] = id_of(byte_piece(byte));
}

std::optional<TokenId> BpeModel::id_of(std::string_view piece) const {
  const auto found = spec_.vocabulary.find(piece);
  if (found == spec_.vocabulary.end()) return std::nullopt;
  return found->second;
}

const BpeModel::Merge* BpeModel::find_merge(TokenId left, TokenId right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BpeModel::for_each_piece(const std::function<void(const std::string& piece, TokenId id)>& use) const {
  for (const auto& [piece, id] : spec_.vocabulary) use(piece, id);
}

bool BpeModel::append_bytes(std::string_view spelling, TextPiece character, std::vector<WordToken>& out) const {
  const auto token_of = [&](char byte) { return byte_tokens_[static_cast<uint8_t>(byte)]; };
  if (!std::all_of(spelling.begin(), spelling.end(), [&](char byte) { return token_of(byte).has_value(); }))
    return false;
  for (const char byte : spelling) out.push_back({*token_of(byte), character.begin, character.end});
  return true;
}

std::string BpeModel::spelling(std::string_view word, size_t at, size_t end) const {
  return cat(at > 0 ? spec_.continuing_subword_prefix : "", word.substr(at, end - at),
             end == word.size() ? spec_.end_of_word_suffix : "");
}

std::vector<WordToken> BpeModel::characters(std::string_view word) const {
  const bool is_marked = !spec_.continuing_subword_prefix.empty() || !spec_.end_of_word_suffix.empty();
  std::vector<WordToken> out;
  out.reserve(word.size());
  std::string marked;
  std::optional<WordToken> unknown;  // not written yet, so that the next unknown character can join it
  for (size_t at = 0; at < word.size();) {
    const size_t end = at + utf8_bytes(word[at]);
    if (is_marked) marked = spelling(word, at, end);
    const std::string_view character = is_marked ? std::string_view(marked) : word.substr(at, end - at);
    if (const auto id = id_of(character)) {
      if (unknown) out.push_back(*unknown);
      unknown.reset();
      out.push_back({*id, at, end});
    } else if (spec_.byte_fallback && append_bytes(character, {at, end}, out)) {
      // An unknown character before these bytes is still not written, so it comes after them. This is Hugging Face's
      // order. It needs a vocabulary with only some of the 256 bytes.
    } else if (unk_) {
      if (unknown && spec_.fuse_unk) {
        unknown->end = end;
      } else {
        if (unknown) out.push_back(*unknown);
        unknown = WordToken{*unk_, at, end};
      }
    }  // without an unknown token, the character is dropped, as in Hugging Face
    at = end;
  }
  if (unknown) out.push_back(*unknown);
  return out;
}

void BpeModel::tokenize(std::string_view word, std::vector<WordToken>& out) const {
  if (spec_.ignore_merges) {
    if (const auto id = id_of(word)) {
      out.push_back({*id, 0, word.size()});
      return;
    }
  }
  Merging merging(*this, characters(word));
  merging.run();
  merging.append_to(out);
}

}  // namespace lancet
