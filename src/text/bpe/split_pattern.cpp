#include "split_pattern.h"

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

struct SplitPattern::Compiled {
  Compiled(std::string_view pattern, std::string_view place) : where(cat(place, ": \"", pattern, "\"")) {
    const std::string translated = to_pcre2(pattern, place);
    int error = 0;
    PCRE2_SIZE at = 0;
    code = pcre2_compile(units(translated), translated.size(), PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
    if (code == nullptr) throw TokenizerError(cat(where, ": not a regular expression: ", message_of(error)));
    // Where there is no compiler to machine code, matching is slower and otherwise the same.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  }
  ~Compiled() { pcre2_code_free(code); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  bool may_match_nothing() const {
    uint32_t empty = 0;
    pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &empty);
    return empty != 0;
  }

  /// Whether there is a match at or behind `from`; it is in `match`. `text` is known to be UTF-8.
  bool find(std::string_view text, size_t from, pcre2_match_data* match) const {
    int found = pcre2_match(code, units(text), text.size(), from, PCRE2_NO_UTF_CHECK, match, nullptr);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)  // the interpreter keeps its stack on the heap
      found = pcre2_match(code, units(text), text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, nullptr);
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
      throw TokenizerError(cat(where, ": fails on a text of ", text.size(), " bytes, at byte ", from, ": ",
                               message_of(found), "; cut the text into shorter documents"));
    }
    return found >= 0;
  }

  std::string where;
  pcre2_code* code = nullptr;
};

SplitPattern::SplitPattern(std::string_view pattern, std::string_view where)
    : compiled_(std::make_shared<Compiled>(pattern, where)) {
  if (compiled_->may_match_nothing())
    throw TokenizerError(cat(compiled_->where, ": may match nothing at all, which is not supported"));
}

void SplitPattern::cut(std::string_view text, size_t begin, size_t end, std::vector<size_t>& ends) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(match.get());
  const std::string_view piece = text.substr(begin, end - begin);
  size_t done = 0;
  while (done < piece.size() && compiled_->find(piece, done, match.get())) {
    if (range[0] > done) ends.push_back(begin + range[0]);
    ends.push_back(begin + range[1]);
    done = range[1];
  }
  if (done < piece.size()) ends.push_back(end);
}

std::vector<size_t> cut_text(std::string_view text, std::span<const SplitPattern> patterns) {
  std::vector<size_t> ends;
  if (!text.empty()) ends.push_back(text.size());
  for (const SplitPattern& pattern : patterns) {
    std::vector<size_t> finer;
    size_t begin = 0;
    for (const size_t end : ends) {
      pattern.cut(text, begin, end, finer);
      begin = end;
    }
    ends = std::move(finer);
  }
  return ends;
}

}  // namespace lancet
