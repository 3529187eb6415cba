// Expressions of a template, of tokens.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "nodes.h"
#include "token_reader.h"

namespace lancet {

/// How an expression is read where several may stand with commas between them.
enum class JinjaTupleForm {
  kAny,         ///< expressions
  kNoChoice,    ///< without `a if b else c`
  kParentheses  ///< within parentheses, where none is a tuple too
};

class JinjaExpressionParser {
 public:
  /// `tokens` outlives this.
  explicit JinjaExpressionParser(JinjaTokenReader& tokens) : tokens_(tokens) {}

  JinjaExpressionPtr expression();
  /// One expression, or a tuple. `end`: a name that ends it.
  JinjaExpressionPtr tuple(JinjaTupleForm form = JinjaTupleForm::kAny, std::string_view end = {});
  /// What a `for`, `set` or `with` sets. `end`: a name that ends it.
  JinjaExpressionPtr target(std::string_view end = {});
  /// As target(), also `name.attribute`.
  JinjaExpressionPtr namespace_target();
  /// Filters with a sign before each; null if there is none. `value` may be null.
  JinjaExpressionPtr filters(JinjaExpressionPtr value);
  /// One filter without the sign, of nothing.
  JinjaExpressionPtr filter_name(JinjaExpressionPtr value);

 private:
  class Level;

  JinjaExpressionPtr make(JinjaOperation operation, int64_t line) const;
  JinjaExpressionPtr finished(JinjaExpressionPtr made) const;
  JinjaExpressionPtr pair(JinjaOperation operation, JinjaExpressionPtr left, JinjaExpressionPtr right,
                          int64_t line) const;
  JinjaExpressionPtr choice();
  JinjaExpressionPtr any_of();
  JinjaExpressionPtr all_of();
  JinjaExpressionPtr negation();
  JinjaExpressionPtr comparison();
  JinjaExpressionPtr sum();
  JinjaExpressionPtr concatenation();
  JinjaExpressionPtr product();
  JinjaExpressionPtr power();
  JinjaExpressionPtr signed_value();
  JinjaExpressionPtr signed_part();
  JinjaExpressionPtr primary();
  JinjaExpressionPtr named();
  JinjaExpressionPtr list();
  JinjaExpressionPtr dict();
  JinjaExpressionPtr with_postfixes(JinjaExpressionPtr value);
  JinjaExpressionPtr with_filters(JinjaExpressionPtr value);
  JinjaExpressionPtr attribute(JinjaExpressionPtr value);
  JinjaExpressionPtr subscript(JinjaExpressionPtr value);
  JinjaExpressionPtr subscribed();
  JinjaExpressionPtr called(JinjaExpressionPtr value);
  JinjaExpressionPtr test(JinjaExpressionPtr value);
  JinjaCallParts call_parts();
  JinjaExpressionPtr as_target(JinjaExpressionPtr value) const;
  bool ends_tuple(std::string_view end) const;
  JinjaExpressionPtr simple_tuple(std::string_view end, const std::function<JinjaExpressionPtr()>& part);

  JinjaTokenReader& tokens_;
  int64_t depth_ = 0;
};

}  // namespace lancet
