#include "expression_parser.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lancet {
namespace {

constexpr int64_t kDeepestExpression = 200;

int64_t depth_of(const JinjaExpressionPtr& part) { return part ? part->depth : 0; }

bool can_be_set(const JinjaExpression& target) {
  constexpr std::array kFixed{"true", "false", "none", "True", "False", "None"};
  switch (target.operation) {
    case JinjaOperation::kName:
      return std::ranges::find(kFixed, target.name) == kFixed.end();
    case JinjaOperation::kNamespaceTarget:
      return true;
    case JinjaOperation::kTuple:
      return std::ranges::all_of(target.parts, [](const JinjaExpressionPtr& part) { return can_be_set(*part); });
    default:
      return false;
  }
}

void mark_as_target(JinjaExpression& target) {
  if (target.operation == JinjaOperation::kName) target.operation = JinjaOperation::kTarget;
  for (const JinjaExpressionPtr& part : target.parts) mark_as_target(*part);
}

}  // namespace

class JinjaExpressionParser::Level {
 public:
  explicit Level(JinjaExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kDeepestExpression)
      throw JinjaError(JinjaError::Cause::kLimit, cat("an expression of more than ", kDeepestExpression, " levels"),
                       parser.tokens_.line());
  }
  ~Level() { --parser_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  JinjaExpressionParser& parser_;
};

JinjaExpressionPtr JinjaExpressionParser::make(JinjaOperation operation, int64_t line) const {
  auto made = std::make_unique<JinjaExpression>();
  made->operation = operation;
  made->line = line;
  return made;
}

/// Sets the depth. The depth of a long chain ("a + b + c") is its length.
JinjaExpressionPtr JinjaExpressionParser::finished(JinjaExpressionPtr made) const {
  int64_t depth = std::max(depth_of(made->call.list), depth_of(made->call.map));
  for (const JinjaExpressionPtr& part : made->parts) depth = std::max(depth, depth_of(part));
  for (const JinjaExpressionPtr& part : made->call.positional) depth = std::max(depth, depth_of(part));
  for (const auto& [name, part] : made->call.named) depth = std::max(depth, depth_of(part));
  made->depth = depth + 1;
  if (made->depth > kDeepestExpression)
    throw JinjaError(JinjaError::Cause::kLimit, cat("an expression of more than ", kDeepestExpression, " levels"),
                     made->line);
  return made;
}

JinjaExpressionPtr JinjaExpressionParser::pair(JinjaOperation operation, JinjaExpressionPtr left,
                                               JinjaExpressionPtr right, int64_t line) const {
  JinjaExpressionPtr made = make(operation, line);
  made->parts.push_back(std::move(left));
  made->parts.push_back(std::move(right));
  return finished(std::move(made));
}

JinjaExpressionPtr JinjaExpressionParser::expression() { return choice(); }

JinjaExpressionPtr JinjaExpressionParser::choice() {
  const Level level(*this);
  int64_t line = tokens_.line();
  JinjaExpressionPtr value = any_of();
  while (tokens_.skip_name("if")) {
    JinjaExpressionPtr made = make(JinjaOperation::kChoice, line);
    made->parts.push_back(any_of());
    made->parts.push_back(std::move(value));
    made->parts.push_back(tokens_.skip_name("else") ? choice() : nullptr);
    value = finished(std::move(made));
    line = tokens_.line();
  }
  return value;
}

JinjaExpressionPtr JinjaExpressionParser::any_of() {
  JinjaExpressionPtr left = all_of();
  for (int64_t line = tokens_.line(); tokens_.skip_name("or"); line = tokens_.line())
    left = pair(JinjaOperation::kOr, std::move(left), all_of(), line);
  return left;
}

JinjaExpressionPtr JinjaExpressionParser::all_of() {
  JinjaExpressionPtr left = negation();
  for (int64_t line = tokens_.line(); tokens_.skip_name("and"); line = tokens_.line())
    left = pair(JinjaOperation::kAnd, std::move(left), negation(), line);
  return left;
}

JinjaExpressionPtr JinjaExpressionParser::negation() {
  const Level level(*this);
  const int64_t line = tokens_.line();
  if (!tokens_.skip_name("not")) return comparison();
  JinjaExpressionPtr made = make(JinjaOperation::kNot, line);
  made->parts.push_back(negation());
  return finished(std::move(made));
}

JinjaExpressionPtr JinjaExpressionParser::comparison() {
  const int64_t line = tokens_.line();
  JinjaExpressionPtr made = make(JinjaOperation::kCompare, line);
  made->parts.push_back(sum());
  for (;;) {
    if (tokens_.current().is_any_sign({"==", "!=", "<", "<=", ">", ">="})) {
      made->operators.push_back(tokens_.take().text);
    } else if (tokens_.skip_name("in")) {
      made->operators.emplace_back("in");
    } else if (tokens_.current().is_name("not") && tokens_.next_one().is_name("in")) {
      tokens_.take();
      tokens_.take();
      made->operators.emplace_back("not in");
    } else {
      break;
    }
    made->parts.push_back(sum());
  }
  return made->operators.empty() ? std::move(made->parts[0]) : finished(std::move(made));
}

JinjaExpressionPtr JinjaExpressionParser::sum() {
  JinjaExpressionPtr left = concatenation();
  while (tokens_.current().is_any_sign({"+", "-"})) {
    const JinjaToken sign = tokens_.take();
    left = pair(JinjaOperation::kArithmetic, std::move(left), concatenation(), sign.line);
    left->name = sign.text;
  }
  return left;
}

JinjaExpressionPtr JinjaExpressionParser::concatenation() {
  JinjaExpressionPtr made = make(JinjaOperation::kConcat, tokens_.line());
  made->parts.push_back(product());
  while (tokens_.skip_sign("~")) made->parts.push_back(product());
  return made->parts.size() == 1 ? std::move(made->parts[0]) : finished(std::move(made));
}

JinjaExpressionPtr JinjaExpressionParser::product() {
  JinjaExpressionPtr left = power();
  while (tokens_.current().is_any_sign({"*", "/", "//", "%"})) {
    const JinjaToken sign = tokens_.take();
    left = pair(JinjaOperation::kArithmetic, std::move(left), power(), sign.line);
    left->name = sign.text;
  }
  return left;
}

JinjaExpressionPtr JinjaExpressionParser::power() {
  JinjaExpressionPtr left = signed_value();
  for (int64_t line = tokens_.line(); tokens_.skip_sign("**"); line = tokens_.line()) {
    left = pair(JinjaOperation::kArithmetic, std::move(left), signed_value(), line);
    left->name = "**";
  }
  return left;
}

JinjaExpressionPtr JinjaExpressionParser::signed_value() { return with_filters(signed_part()); }

JinjaExpressionPtr JinjaExpressionParser::signed_part() {
  const Level level(*this);
  if (!tokens_.current().is_any_sign({"+", "-"})) return with_postfixes(primary());
  const JinjaToken sign = tokens_.take();
  JinjaExpressionPtr made = make(sign.text == "-" ? JinjaOperation::kMinus : JinjaOperation::kPlus, sign.line);
  made->parts.push_back(signed_part());
  return with_postfixes(finished(std::move(made)));
}

JinjaExpressionPtr JinjaExpressionParser::primary() {
  const int64_t line = tokens_.line();
  JinjaExpressionPtr made = make(JinjaOperation::kConstant, line);
  switch (tokens_.current().kind) {
    case JinjaTokenKind::kName:
      return named();
    case JinjaTokenKind::kString: {
      std::string text = tokens_.take().text;
      while (tokens_.is(JinjaTokenKind::kString)) text += tokens_.take().text;
      made->constant = std::move(text);
      return made;
    }
    case JinjaTokenKind::kInteger:
      made->constant = tokens_.take().integer;
      return made;
    case JinjaTokenKind::kFloat:
      made->constant = tokens_.take().real;
      return made;
    default:
      break;
  }
  if (tokens_.current().is_sign("[")) return list();
  if (tokens_.current().is_sign("{")) return dict();
  if (!tokens_.skip_sign("("))
    tokens_.fail(cat("expected an expression, got ", JinjaTokenReader::shown(tokens_.current())));
  made = tuple(JinjaTupleForm::kParentheses);
  tokens_.expect_sign(")");
  return made;
}

JinjaExpressionPtr JinjaExpressionParser::named() {
  const JinjaToken token = tokens_.take();
  JinjaExpressionPtr made = make(JinjaOperation::kConstant, token.line);
  if (token.text == "true" || token.text == "True") {
    made->constant = true;
  } else if (token.text == "false" || token.text == "False") {
    made->constant = false;
  } else if (token.text != "none" && token.text != "None") {
    made->operation = JinjaOperation::kName;
    made->name = token.text;
  }
  return made;
}

JinjaExpressionPtr JinjaExpressionParser::list() {
  JinjaExpressionPtr made = make(JinjaOperation::kList, tokens_.line());
  tokens_.expect_sign("[");
  while (!tokens_.current().is_sign("]")) {
    if (!made->parts.empty()) tokens_.expect_sign(",");
    if (tokens_.current().is_sign("]")) break;
    made->parts.push_back(expression());
  }
  tokens_.expect_sign("]");
  return finished(std::move(made));
}

JinjaExpressionPtr JinjaExpressionParser::dict() {
  JinjaExpressionPtr made = make(JinjaOperation::kDict, tokens_.line());
  tokens_.expect_sign("{");
  while (!tokens_.current().is_sign("}")) {
    if (!made->parts.empty()) tokens_.expect_sign(",");
    if (tokens_.current().is_sign("}")) break;
    made->parts.push_back(expression());
    tokens_.expect_sign(":");
    made->parts.push_back(expression());
  }
  tokens_.expect_sign("}");
  return finished(std::move(made));
}

bool JinjaExpressionParser::ends_tuple(std::string_view end) const {
  return tokens_.is(JinjaTokenKind::kPrintEnd) || tokens_.is(JinjaTokenKind::kTagEnd) ||
         tokens_.current().is_sign(")") || (!end.empty() && tokens_.current().is_name(end));
}

JinjaExpressionPtr JinjaExpressionParser::simple_tuple(std::string_view end,
                                                       const std::function<JinjaExpressionPtr()>& part) {
  JinjaExpressionPtr made = make(JinjaOperation::kTuple, tokens_.line());
  bool is_tuple = false;
  for (;;) {
    if (!made->parts.empty()) tokens_.expect_sign(",");
    if (ends_tuple(end)) break;
    made->parts.push_back(part());
    if (!tokens_.current().is_sign(",")) break;
    is_tuple = true;
  }
  if (is_tuple || made->parts.empty()) return finished(std::move(made));
  return std::move(made->parts[0]);
}

JinjaExpressionPtr JinjaExpressionParser::tuple(JinjaTupleForm form, std::string_view end) {
  if (form != JinjaTupleForm::kParentheses && ends_tuple(end))
    tokens_.fail(cat("expected an expression, got ", JinjaTokenReader::shown(tokens_.current())));
  return simple_tuple(end, [&] { return form == JinjaTupleForm::kNoChoice ? any_of() : expression(); });
}

JinjaExpressionPtr JinjaExpressionParser::as_target(JinjaExpressionPtr value) const {
  if (!can_be_set(*value)) JinjaTokenReader::fail_at(value->line, "expected a name, or names with commas, to be set");
  mark_as_target(*value);
  return value;
}

JinjaExpressionPtr JinjaExpressionParser::target(std::string_view end) {
  if (ends_tuple(end)) tokens_.fail("expected a name to be set");
  return as_target(simple_tuple(end, [&] { return primary(); }));
}

JinjaExpressionPtr JinjaExpressionParser::namespace_target() {
  if (ends_tuple({})) tokens_.fail("expected a name to be set");
  return as_target(simple_tuple({}, [&] {
    const bool has_attribute = tokens_.is(JinjaTokenKind::kName) && tokens_.next_one().is_sign(".");
    JinjaExpressionPtr part = primary();
    if (!has_attribute || part->operation != JinjaOperation::kName) return part;
    tokens_.take();
    part->operation = JinjaOperation::kNamespaceTarget;
    part->constant = tokens_.expect_name();
    return part;
  }));
}

}  // namespace lancet
