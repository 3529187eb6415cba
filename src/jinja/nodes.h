// A template as a tree.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lancet {

struct JinjaExpression;
using JinjaExpressionPtr = std::unique_ptr<JinjaExpression>;

/// Where the value of a name is: the number of scopes outwards, and the place in that scope.
struct JinjaSlot {
  size_t hops = 0;
  size_t place = 0;
};

struct JinjaCallParts {
  std::vector<JinjaExpressionPtr> positional = {};
  std::vector<std::pair<std::string, JinjaExpressionPtr>> named = {};
  JinjaExpressionPtr list = {};  ///< *values; null: none
  JinjaExpressionPtr map = {};   ///< **values; null: none
};

enum class JinjaOperation {
  kConstant,
  kName,             ///< a name that is read
  kTarget,           ///< a name that is set
  kNamespaceTarget,  ///< `name.attribute` that is set
  kTuple,
  kList,
  kDict,  ///< parts: key, value, key, value
  kNot,
  kMinus,
  kPlus,
  kAnd,
  kOr,
  kArithmetic,  ///< by `name`: + - * / // % **
  kConcat,
  kCompare,    ///< parts[0] operators[0] parts[1] operators[1] ...
  kAttribute,  ///< parts[0].name
  kItem,       ///< parts[0][parts[1]]
  kSlice,      ///< start, stop, step: each may be null
  kFilter,     ///< parts[0] | name(call); parts[0] is null in a filter block
  kTest,
  kCall,
  kChoice  ///< parts[1] if parts[0] else parts[2], which may be null
};

struct JinjaExpression {
  JinjaOperation operation = JinjaOperation::kConstant;
  int64_t line = 0;
  int64_t depth = 1;  ///< levels of nested expressions
  std::variant<std::monostate, bool, int64_t, double, std::string> constant = {};
  std::string name = {};
  std::vector<JinjaExpressionPtr> parts = {};
  std::vector<std::string> operators = {};
  JinjaCallParts call = {};
  JinjaSlot slot = {};
};

/// How a name gets its value when a scope begins.
struct JinjaLoad {
  enum class Kind {
    kMissing,
    kVariable,   ///< an argument of render(), or a function that all templates have
    kOuter,      ///< the value that the name has outside
    kParameter,  ///< whoever begins the scope gives it
  };
  Kind kind = Kind::kMissing;
  std::string name = {};
  JinjaSlot outer = {};
};

struct JinjaScopePlan {
  std::vector<JinjaLoad> loads = {};  ///< by place
};

struct JinjaStatement;
using JinjaBody = std::vector<std::unique_ptr<JinjaStatement>>;

enum class JinjaAction {
  kText,
  kPrint,  ///< expressions
  kIf,     ///< expressions[i] is the test of bodies[i]; an additional body is that of else
  kFor,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,  ///< without an expression: the text between generation and endgeneration
  kFilterBlock,
  kWith,
  kBreak,
  kContinue,
  kNoLoader  ///< include, import, extends: in transformers, templates cannot load anything
};

struct JinjaParameter {
  std::string name = {};
  JinjaExpressionPtr fallback = {};  ///< null: there is none
  size_t place = 0;
};

struct JinjaFunctionPlan {
  std::vector<JinjaParameter> parameters = {};
  // What the body reads in addition to its parameters, as places in its scope.
  bool reads_caller = false, reads_kwargs = false, reads_varargs = false;
  size_t caller = 0, kwargs = 0, varargs = 0;
};

struct JinjaStatement {
  JinjaAction action = JinjaAction::kText;
  int64_t line = 0;
  std::string text = {};  ///< a text, the name of a macro, or the tag
  std::vector<JinjaExpressionPtr> expressions = {};
  std::vector<JinjaBody> bodies = {};
  std::vector<JinjaExpressionPtr> targets = {};  ///< targets of for, set and with
  JinjaExpressionPtr test = {};                  ///< for ... if test
  JinjaFunctionPlan function = {};
  bool is_recursive = false;
  JinjaScopePlan scope = {};                          ///< scope of bodies[0]
  JinjaScopePlan test_scope = {}, else_scope = {};    ///< scopes of a for loop
  size_t loop_place = 0;                              ///< place of `loop` in the scope of a for loop
  std::vector<JinjaExpressionPtr> test_targets = {};  ///< a for loop's target in the scope of its test
  JinjaSlot slot = {};                                ///< place of a macro's name
};

/// A whole template.
struct JinjaTree {
  JinjaBody body = {};
  JinjaScopePlan scope = {};
};

}  // namespace lancet
