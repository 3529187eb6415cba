#include "lancet/tokenizer_files/text_pattern.h"

#include <array>
#include <optional>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/tokenizer_files/json_node.h"
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

class TextPattern::Compiled {
 public:
  Compiled(std::string_view pattern, std::string where) : where_(std::move(where)) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_ = pcre2_compile(units(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
    if (code_ == nullptr) throw TokenizerError(cat(where_, ": not a regular expression: ", message_of(error)));
    // if PCRE2 cannot compile to machine code here, matching is only slower
    pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE);
  }
  ~Compiled() { pcre2_code_free(code_); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;

  std::vector<TextPiece> matches(std::string_view text) const {
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
    const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(match.get());
    std::vector<TextPiece> out;
    std::optional<size_t> last_end;
    for (size_t from = 0; from <= text.size() && find(text, from, match.get());) {
      const TextPiece found{range[0], range[1]};
      if (found.begin == found.end && last_end == found.end) {
        from += from < text.size() ? utf8_bytes(text[from]) : 1;
        continue;
      }
      out.push_back(found);
      last_end = from = found.end;
    }
    return out;
  }

 private:
  /// Whether there is a match at or after `from`. It is stored in `match`.
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

  std::string where_;
  pcre2_code* code_ = nullptr;
};

TextPattern TextPattern::regex(std::string_view pattern, std::string_view where) {
  TextPattern out;
  out.compiled_ = std::make_shared<Compiled>(to_pcre2(pattern, where), cat(where, ": \"", pattern, "\""));
  return out;
}

TextPattern TextPattern::literal(std::string_view text) {
  TextPattern out;
  out.literal_ = text;
  return out;
}

std::vector<TextPiece> TextPattern::matches(std::string_view text) const {
  if (compiled_ != nullptr) return compiled_->matches(text);
  std::vector<TextPiece> out;
  for (size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at + literal_.size()))
    out.push_back({at, at + literal_.size()});
  return out;
}

}  // namespace lancet
