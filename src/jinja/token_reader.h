// Reads tokens one after another, and checks them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/core/strings.h"
#include "lancet/jinja/jinja_template.h"
#include "lexer.h"

namespace lancet {

class JinjaTokenReader {
 public:
  explicit JinjaTokenReader(std::vector<JinjaToken> tokens) : tokens_(std::move(tokens)) {}

  const JinjaToken& current() const { return tokens_[at_]; }
  const JinjaToken& next_one() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  int64_t line() const { return current().line; }
  bool is(JinjaTokenKind kind) const { return current().kind == kind; }

  JinjaToken take() {
    JinjaToken token = current();
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool skip_name(std::string_view name) { return skip_if(current().is_name(name)); }
  bool skip_sign(std::string_view sign) { return skip_if(current().is_sign(sign)); }

  void expect_sign(std::string_view sign) {
    if (!skip_sign(sign)) fail(cat("expected '", sign, "', got ", shown(current())));
  }
  std::string expect_name() {
    if (!is(JinjaTokenKind::kName)) fail(cat("expected a name, got ", shown(current())));
    return take().text;
  }
  void expect(JinjaTokenKind kind, std::string_view what) {
    if (!is(kind)) fail(cat("expected ", what, ", got ", shown(current())));
    take();
  }

  static std::string shown(const JinjaToken& token) {
    switch (token.kind) {
      case JinjaTokenKind::kEnd:
        return "the template's end";
      case JinjaTokenKind::kTagEnd:
        return "'%}'";
      case JinjaTokenKind::kPrintEnd:
        return "'}}'";
      case JinjaTokenKind::kString:
        return cat("the text '", excerpt(token.text, 40), "'");
      case JinjaTokenKind::kInteger:
        return cat(token.integer);
      case JinjaTokenKind::kFloat:
        return cat(token.real);
      default:
        return cat("'", excerpt(token.text, 40), "'");
    }
  }

  [[noreturn]] void fail(const std::string& reason) const { fail_at(line(), reason); }
  [[noreturn]] static void fail_at(int64_t line, const std::string& reason) {
    throw JinjaError(JinjaError::Cause::kTemplate, reason, line);
  }

 private:
  bool skip_if(bool holds) {
    if (holds) take();
    return holds;
  }

  std::vector<JinjaToken> tokens_;
  size_t at_ = 0;
};

}  // namespace lancet
