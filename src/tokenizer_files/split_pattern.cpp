#include "lancet/tokenizer_files/split_pattern.h"

#include <array>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "pattern_syntax.h"

namespace lancet {
namespace {

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR units(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

}  // namespace

class SplitPattern::Compiled {
 public:
  Compiled(std::string_view pattern, uint32_t flags, std::string where) : where_(std::move(where)) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_ = pcre2_compile(units(pattern), pattern.size(), PCRE2_UTF | flags, &error, &at, nullptr);
    if (code_ == nullptr) throw TokenizerError(cat(where_, ": not a regular expression: ", message_of(error)));
    // Where there is no compiler to machine code, matching is slower and otherwise the same.
    pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
    uint32_t empty = 0;
    pcre2_pattern_info(code_, PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty == 0) return;
    pcre2_code_free(code_);
    throw TokenizerError(cat(where_, ": may match nothing at all, which is not supported"));
  }
  ~Compiled() { pcre2_code_free(code_); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  /// Whether there is a match at or after `from`; it is in `match`. `text` is known to be UTF-8.
  bool find(std::string_view text, size_t from, pcre2_match_data* match) const {
    int found = pcre2_match(code_, units(text), text.size(), from, PCRE2_NO_UTF_CHECK, match, nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter keeps its stack on the heap
      found = pcre2_match(code_, units(text), text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, nullptr);
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
      throw TokenizerError(cat(where_, ": fails on a text of ", text.size(), " bytes, at byte ", from, ": ",
                               message_of(found), "; cut the text into shorter documents"));
    }
    return found >= 0;
  }

 private:
  std::string where_;
  pcre2_code* code_ = nullptr;
};

namespace {

/// Turns matches and gaps, in order, into pieces.
class SplitPieces {
 public:
  SplitPieces(SplitBehavior behavior, std::vector<TextPiece>& out) : behavior_(behavior), out_(out) {}

  void gap(TextPiece piece) {
    if (behavior_ != SplitBehavior::kRemovedGaps) out_.push_back(piece);
    follows_gap_ = true;
  }

  void match(TextPiece piece) {
    if (behavior_ == SplitBehavior::kMergedWithPrevious && follows_gap_) {
      out_.back().end = piece.end;
    } else if (behavior_ != SplitBehavior::kRemovedMatches) {
      out_.push_back(piece);
    }
    follows_gap_ = false;
  }

 private:
  SplitBehavior behavior_;
  std::vector<TextPiece>& out_;
  bool follows_gap_ = false;
};

}  // namespace

SplitPattern::SplitPattern(std::shared_ptr<const Compiled> compiled, SplitBehavior behavior)
    : compiled_(std::move(compiled)), behavior_(behavior) {}

SplitPattern SplitPattern::regex(std::string_view pattern, SplitBehavior behavior, std::string_view where) {
  return {std::make_shared<Compiled>(to_pcre2(pattern, where), PCRE2_UCP, cat(where, ": \"", pattern, "\"")), behavior};
}

SplitPattern SplitPattern::literal(std::string_view text, SplitBehavior behavior, std::string_view where) {
  return {std::make_shared<Compiled>(text, PCRE2_LITERAL, cat(where, ": \"", text, "\"")), behavior};
}

void SplitPattern::cut(std::string_view text, TextPiece piece, std::vector<TextPiece>& out) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(match.get());
  const std::string_view seen = text.substr(piece.begin, piece.end - piece.begin);
  SplitPieces pieces(behavior_, out);
  size_t done = 0;
  while (done < seen.size() && compiled_->find(seen, done, match.get())) {
    if (range[0] > done) pieces.gap({piece.begin + done, piece.begin + range[0]});
    pieces.match({piece.begin + range[0], piece.begin + range[1]});
    done = range[1];
  }
  if (done < seen.size()) pieces.gap({piece.begin + done, piece.end});
}

std::vector<TextPiece> cut_text(std::string_view text, std::span<const SplitPattern> patterns) {
  std::vector<TextPiece> pieces;
  if (!text.empty()) pieces.push_back({0, text.size()});
  for (const SplitPattern& pattern : patterns) {
    std::vector<TextPiece> finer;
    for (const TextPiece& piece : pieces) pattern.cut(text, piece, finer);
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace lancet
