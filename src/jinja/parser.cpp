#include "parser.h"

#include <initializer_list>
#include <string>

#include "expression_parser.h"
#include "lexer.h"
#include "token_reader.h"

namespace lancet {
namespace {

constexpr int64_t kMostSourceBytes = int64_t{1} << 20U;
constexpr int64_t kDeepestStatement = 100;

using JinjaStatementPtr = std::unique_ptr<JinjaStatement>;

class JinjaParser {
 public:
  explicit JinjaParser(std::string_view source) : tokens_(tokenize_jinja(source)), expressions_(tokens_) {}

  JinjaBody run() { return body({}); }

 private:
  using Names = std::initializer_list<std::string_view>;

  JinjaStatementPtr make(JinjaAction action, int64_t line) const {
    auto made = std::make_unique<JinjaStatement>();
    made->action = action;
    made->line = line;
    return made;
  }

  bool is_one_of(Names names) const {
    for (const std::string_view name : names)
      if (tokens_.current().is_name(name)) return true;
    return false;
  }

  static std::string listed(Names names) {
    std::string text;
    for (const std::string_view name : names) text += cat(text.empty() ? "" : " or ", "{% ", name, " %}");
    return text;
  }

  /// Parses statements up to a tag that begins with one of `ends`, which becomes the current token; without `ends` to
  /// the end.
  JinjaBody body(Names ends) {
    if (++depth_ > kDeepestStatement)
      throw JinjaError(JinjaError::Cause::kLimit, cat("tags within each other, more than ", kDeepestStatement),
                       tokens_.line());
    JinjaBody made;
    for (;;) {
      const int64_t line = tokens_.line();
      if (tokens_.is(JinjaTokenKind::kEnd)) {
        if (ends.size() > 0) tokens_.fail(cat("the template ends within a tag: expected ", listed(ends)));
        break;
      }
      if (tokens_.is(JinjaTokenKind::kText)) {
        made.push_back(make(JinjaAction::kText, line));
        made.back()->text = tokens_.take().text;
      } else if (tokens_.is(JinjaTokenKind::kPrintBegin)) {
        tokens_.take();
        made.push_back(make(JinjaAction::kPrint, line));
        made.back()->expressions.push_back(expressions_.tuple());
        tokens_.expect(JinjaTokenKind::kPrintEnd, "'}}'");
      } else {
        tokens_.expect(JinjaTokenKind::kTagBegin, "a tag");
        if (is_one_of(ends)) break;
        made.push_back(statement(ends));
        tokens_.expect(JinjaTokenKind::kTagEnd, "'%}'");
      }
    }
    --depth_;
    return made;
  }

  /// Parses the end of a tag, statements, and one of `ends`, which becomes the current token.
  JinjaBody inner_body(Names ends) {
    tokens_.skip_sign(":");
    tokens_.expect(JinjaTokenKind::kTagEnd, "'%}'");
    return body(ends);
  }

  JinjaBody whole_body(std::string_view end) {
    JinjaBody made = inner_body({end});
    tokens_.take();
    return made;
  }

  /// Parses a body that is a separate function, which cannot end a loop around it.
  JinjaBody function_body(std::string_view end) {
    const int64_t loops = std::exchange(loops_, 0);
    JinjaBody made = whole_body(end);
    loops_ = loops;
    return made;
  }

  JinjaStatementPtr statement(Names ends) {
    if (!tokens_.is(JinjaTokenKind::kName))
      tokens_.fail(cat("expected a tag's name, got ", JinjaTokenReader::shown(tokens_.current())));
    const JinjaToken tag = tokens_.take();
    if (tag.text == "if") return if_statement(tag.line);
    if (tag.text == "for") return for_statement(tag.line);
    if (tag.text == "set") return set_statement(tag.line);
    if (tag.text == "macro") return macro(tag.line);
    if (tag.text == "call") return call_block(tag.line);
    if (tag.text == "generation") return generation(tag.line);
    if (tag.text == "filter") return filter_block(tag.line);
    if (tag.text == "with") return with_statement(tag.line);
    if (tag.text == "print") return print_statement(tag.line);
    if (tag.text == "break" || tag.text == "continue") return leave_loop(tag);
    if (tag.text == "include" || tag.text == "import" || tag.text == "from" || tag.text == "extends")
      return no_loader(tag);
    if (tag.text == "block" || tag.text == "autoescape")
      JinjaTokenReader::fail_at(tag.line, cat("{% ", tag.text, " %}: lancet does not have this tag of Jinja's"));
    std::string reason = cat("{% ", tag.text, " %}: no tag of Jinja's as transformers runs it");
    if (ends.size() > 0) reason += cat("; expected one, or ", listed(ends));
    JinjaTokenReader::fail_at(tag.line, reason);
  }

  JinjaStatementPtr if_statement(int64_t line) {
    JinjaStatementPtr made = make(JinjaAction::kIf, line);
    for (;;) {
      made->expressions.push_back(expressions_.tuple(JinjaTupleForm::kNoChoice));
      made->bodies.push_back(inner_body({"elif", "else", "endif"}));
      const std::string next = tokens_.take().text;
      if (next == "elif") continue;
      if (next == "else") made->bodies.push_back(whole_body("endif"));
      return made;
    }
  }

  JinjaStatementPtr for_statement(int64_t line) {
    JinjaStatementPtr made = make(JinjaAction::kFor, line);
    made->targets.push_back(expressions_.target("in"));
    if (!tokens_.skip_name("in")) tokens_.fail(cat("expected `in`, got ", JinjaTokenReader::shown(tokens_.current())));
    made->expressions.push_back(expressions_.tuple(JinjaTupleForm::kNoChoice, "recursive"));
    if (tokens_.skip_name("if")) made->test = expressions_.expression();
    made->is_recursive = tokens_.skip_name("recursive");
    ++loops_;
    made->bodies.push_back(inner_body({"endfor", "else"}));
    --loops_;
    if (tokens_.take().text == "else") made->bodies.push_back(whole_body("endfor"));
    return made;
  }

  JinjaStatementPtr set_statement(int64_t line) {
    JinjaStatementPtr made = make(JinjaAction::kSet, line);
    made->targets.push_back(expressions_.namespace_target());
    if (tokens_.skip_sign("=")) {
      made->expressions.push_back(expressions_.tuple());
      return made;
    }
    made->action = JinjaAction::kSetBlock;
    made->expressions.push_back(expressions_.filters(nullptr));
    made->bodies.push_back(whole_body("endset"));
    return made;
  }

  void read_parameters(JinjaFunctionPlan& function) {
    tokens_.expect_sign("(");
    while (!tokens_.current().is_sign(")")) {
      if (!function.parameters.empty()) tokens_.expect_sign(",");
      JinjaParameter parameter{.name = tokens_.expect_name()};
      if (parameter.name == "true" || parameter.name == "false" || parameter.name == "none" ||
          parameter.name == "True" || parameter.name == "False" || parameter.name == "None")
        tokens_.fail(cat(parameter.name, ": no name for a parameter"));
      for (const JinjaParameter& other : function.parameters)
        if (other.name == parameter.name) tokens_.fail(cat(parameter.name, ": two parameters of this name"));
      if (tokens_.skip_sign("=")) {
        parameter.fallback = expressions_.expression();
      } else if (!function.parameters.empty() && function.parameters.back().fallback) {
        tokens_.fail(cat(parameter.name, ": a parameter without a default after one that has one"));
      }
      function.parameters.push_back(std::move(parameter));
    }
    tokens_.expect_sign(")");
  }

  JinjaStatementPtr macro(int64_t line) {
    JinjaStatementPtr made = make(JinjaAction::kMacro, line);
    made->text = tokens_.expect_name();
    read_parameters(made->function);
    made->bodies.push_back(function_body("endmacro"));
    return made;
  }

  JinjaStatementPtr call_block(int64_t line) {
    JinjaStatementPtr made = make(JinjaAction::kCallBlock, line);
    if (tokens_.current().is_sign("(")) read_parameters(made->function);
    made->expressions.push_back(expressions_.expression());
    if (made->expressions[0]->operation != JinjaOperation::kCall)
      JinjaTokenReader::fail_at(line, "{% call %}: expected a call, such as {% call name() %}");
    made->bodies.push_back(function_body("endcall"));
    return made;
  }

  JinjaStatementPtr generation(int64_t line) {
    JinjaStatementPtr made = make(JinjaAction::kCallBlock, line);
    made->bodies.push_back(function_body("endgeneration"));
    return made;
  }

  JinjaStatementPtr filter_block(int64_t line) {
    JinjaStatementPtr made = make(JinjaAction::kFilterBlock, line);
    made->expressions.push_back(expressions_.filters(expressions_.filter_name(nullptr)));
    made->bodies.push_back(whole_body("endfilter"));
    return made;
  }

  JinjaStatementPtr with_statement(int64_t line) {
    JinjaStatementPtr made = make(JinjaAction::kWith, line);
    while (!tokens_.is(JinjaTokenKind::kTagEnd)) {
      if (!made->targets.empty()) tokens_.expect_sign(",");
      made->targets.push_back(expressions_.target());
      tokens_.expect_sign("=");
      made->expressions.push_back(expressions_.expression());
    }
    made->bodies.push_back(whole_body("endwith"));
    return made;
  }

  JinjaStatementPtr print_statement(int64_t line) {
    JinjaStatementPtr made = make(JinjaAction::kPrint, line);
    while (!tokens_.is(JinjaTokenKind::kTagEnd)) {
      if (!made->expressions.empty()) tokens_.expect_sign(",");
      made->expressions.push_back(expressions_.expression());
    }
    return made;
  }

  JinjaStatementPtr leave_loop(const JinjaToken& tag) {
    if (loops_ == 0) JinjaTokenReader::fail_at(tag.line, cat("{% ", tag.text, " %} outside of a loop"));
    return make(tag.text == "break" ? JinjaAction::kBreak : JinjaAction::kContinue, tag.line);
  }

  /// Nothing can be loaded. The tag is parsed, and becomes an error when the template reaches it.
  JinjaStatementPtr no_loader(const JinjaToken& tag) {
    JinjaStatementPtr made = make(JinjaAction::kNoLoader, tag.line);
    made->text = tag.text;
    while (!tokens_.is(JinjaTokenKind::kTagEnd) && !tokens_.is(JinjaTokenKind::kEnd)) tokens_.take();
    return made;
  }

  JinjaTokenReader tokens_;
  JinjaExpressionParser expressions_;
  int64_t depth_ = 0;
  int64_t loops_ = 0;  ///< number of loops that `break` can leave
};

}  // namespace

JinjaBody parse_jinja(std::string_view source) {
  if (static_cast<int64_t>(source.size()) > kMostSourceBytes)
    throw JinjaError(JinjaError::Cause::kLimit,
                     cat("expected a template of at most ", binary_bytes_text(kMostSourceBytes), ", got ",
                         binary_bytes_text(source.size())),
                     1);
  if (const std::optional<size_t> bad = first_invalid_utf8(source))
    throw JinjaError(JinjaError::Cause::kTemplate, cat("byte ", *bad, " is no UTF-8"), 1);
  return JinjaParser(source).run();
}

}  // namespace lancet
