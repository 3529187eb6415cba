// Parses what follows a value in an expression: attributes, items, calls, filters and tests.
#include <array>
#include <utility>

#include "expression_parser.h"

namespace lancet {

JinjaExpressionPtr JinjaExpressionParser::with_postfixes(JinjaExpressionPtr value) {
  for (;;) {
    if (tokens_.current().is_sign(".")) {
      value = attribute(std::move(value));
    } else if (tokens_.current().is_sign("[")) {
      value = subscript(std::move(value));
    } else if (tokens_.current().is_sign("(")) {
      value = called(std::move(value));
    } else {
      return value;
    }
  }
}

JinjaExpressionPtr JinjaExpressionParser::with_filters(JinjaExpressionPtr value) {
  for (;;) {
    if (tokens_.current().is_sign("|")) {
      value = filters(std::move(value));
    } else if (tokens_.current().is_name("is")) {
      value = test(std::move(value));
    } else if (tokens_.current().is_sign("(")) {
      value = called(std::move(value));
    } else {
      return value;
    }
  }
}

JinjaExpressionPtr JinjaExpressionParser::attribute(JinjaExpressionPtr value) {
  const int64_t line = tokens_.line();
  tokens_.expect_sign(".");
  if (tokens_.is(JinjaTokenKind::kInteger)) {
    JinjaExpressionPtr index = make(JinjaOperation::kConstant, line);
    index->constant = tokens_.take().integer;
    return pair(JinjaOperation::kItem, std::move(value), std::move(index), line);
  }
  JinjaExpressionPtr made = make(JinjaOperation::kAttribute, line);
  made->name = tokens_.expect_name();
  made->parts.push_back(std::move(value));
  return finished(std::move(made));
}

JinjaExpressionPtr JinjaExpressionParser::subscript(JinjaExpressionPtr value) {
  const int64_t line = tokens_.line();
  tokens_.expect_sign("[");
  JinjaExpressionPtr several = make(JinjaOperation::kTuple, line);
  while (!tokens_.current().is_sign("]")) {
    if (!several->parts.empty()) tokens_.expect_sign(",");
    several->parts.push_back(subscribed());
  }
  tokens_.expect_sign("]");
  if (several->parts.size() == 1)
    return pair(JinjaOperation::kItem, std::move(value), std::move(several->parts[0]), line);
  for (const JinjaExpressionPtr& part : several->parts)
    if (part->operation == JinjaOperation::kSlice) JinjaTokenReader::fail_at(line, "several slices in one []");
  return pair(JinjaOperation::kItem, std::move(value), finished(std::move(several)), line);
}

JinjaExpressionPtr JinjaExpressionParser::subscribed() {
  const int64_t line = tokens_.line();
  const auto is_end = [&] { return tokens_.current().is_any_sign({"]", ",", ":"}); };
  JinjaExpressionPtr made = make(JinjaOperation::kSlice, line);
  if (tokens_.current().is_sign(":")) {
    made->parts.push_back(nullptr);
  } else {
    JinjaExpressionPtr first = expression();
    if (!tokens_.current().is_sign(":")) return first;
    made->parts.push_back(std::move(first));
  }
  tokens_.expect_sign(":");
  made->parts.push_back(is_end() ? nullptr : expression());
  const bool has_step = tokens_.skip_sign(":");
  made->parts.push_back(has_step && !is_end() ? expression() : nullptr);
  return finished(std::move(made));
}

JinjaCallParts JinjaExpressionParser::call_parts() {
  const int64_t line = tokens_.line();
  JinjaCallParts parts;
  const auto check = [line](bool holds) {
    if (!holds)
      JinjaTokenReader::fail_at(line, "arguments in an order that no call has: values, name=value, *list, **map");
  };
  tokens_.expect_sign("(");
  bool is_first = true;
  while (!tokens_.current().is_sign(")")) {
    if (!std::exchange(is_first, false)) {
      tokens_.expect_sign(",");
      if (tokens_.current().is_sign(")")) break;
    }
    if (tokens_.skip_sign("*")) {
      check(!parts.list && !parts.map);
      parts.list = expression();
    } else if (tokens_.skip_sign("**")) {
      check(!parts.map);
      parts.map = expression();
    } else if (tokens_.is(JinjaTokenKind::kName) && tokens_.next_one().is_sign("=")) {
      check(!parts.map);
      std::string name = tokens_.take().text;
      tokens_.take();
      for (const auto& [other, value] : parts.named)
        if (other == name) tokens_.fail(cat(name, ": given twice"));
      parts.named.emplace_back(std::move(name), expression());
    } else {
      check(!parts.list && !parts.map && parts.named.empty());
      parts.positional.push_back(expression());
    }
  }
  tokens_.expect_sign(")");
  return parts;
}

JinjaExpressionPtr JinjaExpressionParser::called(JinjaExpressionPtr value) {
  JinjaExpressionPtr made = make(JinjaOperation::kCall, tokens_.line());
  made->parts.push_back(std::move(value));
  made->call = call_parts();
  return finished(std::move(made));
}

JinjaExpressionPtr JinjaExpressionParser::filters(JinjaExpressionPtr value) {
  while (tokens_.skip_sign("|")) value = filter_name(std::move(value));
  return value;
}

JinjaExpressionPtr JinjaExpressionParser::filter_name(JinjaExpressionPtr value) {
  JinjaExpressionPtr made = make(JinjaOperation::kFilter, tokens_.line());
  made->name = tokens_.expect_name();
  while (tokens_.skip_sign(".")) made->name += "." + tokens_.expect_name();
  made->parts.push_back(std::move(value));
  if (tokens_.current().is_sign("(")) made->call = call_parts();
  return finished(std::move(made));
}

JinjaExpressionPtr JinjaExpressionParser::test(JinjaExpressionPtr value) {
  const int64_t line = tokens_.line();
  tokens_.take();
  const bool is_negated = tokens_.skip_name("not");
  JinjaExpressionPtr made = make(JinjaOperation::kTest, line);
  made->name = tokens_.expect_name();
  while (tokens_.skip_sign(".")) made->name += "." + tokens_.expect_name();
  made->parts.push_back(std::move(value));
  const JinjaToken& next = tokens_.current();
  const bool begins_value = next.kind == JinjaTokenKind::kName || next.kind == JinjaTokenKind::kString ||
                            next.kind == JinjaTokenKind::kInteger || next.kind == JinjaTokenKind::kFloat ||
                            next.is_any_sign({"[", "{"});
  if (next.is_sign("(")) {
    made->call = call_parts();
  } else if (begins_value && !next.is_name("else") && !next.is_name("or") && !next.is_name("and")) {
    if (next.is_name("is")) tokens_.fail("several tests with `is` in a row");
    made->call.positional.push_back(with_postfixes(primary()));
  }
  made = finished(std::move(made));
  if (!is_negated) return made;
  JinjaExpressionPtr negated = make(JinjaOperation::kNot, line);
  negated->parts.push_back(std::move(made));
  return finished(std::move(negated));
}

}  // namespace lancet
