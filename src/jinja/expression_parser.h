// Parses the expressions of a template from tokens.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "nodes.h"
#include "token_reader.h"

namespace lancet {

/// How an expression is parsed if several can follow, separated by commas.
enum class JinjaTupleForm {
  kAny,         ///< any expressions
  kNoChoice,    ///< without `a if b else c`
  kParentheses  ///< inside parentheses, where nothing at all is a tuple, too
};

class JinjaExpressionParser {
 public:
  /// `tokens` must outlive this object.
  explicit JinjaExpressionParser(JinjaTokenReader& tokens) : tokens_(tokens) {}

  JinjaExpressionPtr expression();
  /// Parses one expression, or a tuple. `end`: a name that ends it.
  JinjaExpressionPtr tuple(JinjaTupleForm form = JinjaTupleForm::kAny, std::string_view end = {});
  /// Parses what a `for`, `set` or `with` sets. `end`: a name that ends it.
  JinjaExpressionPtr target(std::string_view end = {});
  /// As target(), also `name.attribute`.
  JinjaExpressionPtr namespace_target();
  /// Parses filters with a sign before each; null if there is none. `value` may be null.
  JinjaExpressionPtr filters(JinjaExpressionPtr value);
  /// Parses one filter without the sign, of nothing.
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
