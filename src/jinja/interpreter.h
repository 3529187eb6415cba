// Runs the tree of a template.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "lancet/jinja/jinja_template.h"
#include "nodes.h"
#include "operations.h"
#include "run.h"

namespace lancet {

/// The values of the names in one scope.
struct JinjaScope : JinjaObject {
  JinjaScope* outer = nullptr;
  std::vector<JinjaValue> values;
};

class JinjaInterpreter {
 public:
  /// All arguments must outlive this object.
  JinjaInterpreter(const JinjaTree& tree, JinjaRun& run, const JinjaDataMap& variables);

  std::string render();

 private:
  /// How a statement ends.
  enum class Flow { kOn, kBreak, kContinue };

  // Statements (interpreter.cpp).
  JinjaScope& begin_scope(const JinjaScopePlan& plan, JinjaScope* outer);
  Flow run_body(const JinjaBody& body, JinjaScope& scope);
  Flow run_statement(const JinjaStatement& statement, JinjaScope& scope);
  Flow run_if(const JinjaStatement& statement, JinjaScope& scope);
  Flow run_for(const JinjaStatement& statement, JinjaScope& scope);
  Flow run_items(const JinjaStatement& statement, JinjaScope& scope, const JinjaValue& items, int64_t depth);
  JinjaLoop& make_loop(const JinjaStatement& statement, JinjaScope& scope, const JinjaValue& items, int64_t depth);
  JinjaIterator& tested(const JinjaStatement& statement, JinjaScope& scope, JinjaIterator& items);
  Flow run_block(const JinjaStatement& statement, JinjaScope& scope);
  void run_call_block(const JinjaStatement& statement, JinjaScope& scope);
  JinjaValue make_function(const JinjaStatement& statement, JinjaScope& scope);
  std::string call_function(const JinjaStatement& statement, JinjaScope& outer, JinjaArguments& given);
  void bind_parameters(const JinjaStatement& statement, JinjaScope& scope, JinjaArguments& given);
  void assign(const JinjaExpression& target, const JinjaValue& value, JinjaScope& scope);
  void check_namespaces(const JinjaExpression& target, JinjaScope& scope);
  JinjaValue target_value(const JinjaExpression& target, JinjaScope& scope);
  void write(std::string_view text);
  void write_text_value(const JinjaValue& value);

  // Expressions (expressions.cpp).
  JinjaValue evaluate(const JinjaExpression& expression, JinjaScope& scope);
  JinjaValue evaluate_constant(const JinjaExpression& expression);
  JinjaValue evaluate_name(const JinjaExpression& expression, JinjaScope& scope);
  JinjaValue evaluate_list(const JinjaExpression& expression, JinjaScope& scope);
  JinjaValue evaluate_dict(const JinjaExpression& expression, JinjaScope& scope);
  JinjaValue evaluate_compare(const JinjaExpression& expression, JinjaScope& scope);
  JinjaValue evaluate_concat(const JinjaExpression& expression, JinjaScope& scope);
  JinjaValue evaluate_item(const JinjaExpression& expression, JinjaScope& scope);
  /// `block`: the text to which a filter block applies its innermost filter; null in other places.
  JinjaValue evaluate_filter(const JinjaExpression& expression, JinjaScope& scope, const JinjaValue* block);
  JinjaValue evaluate_call(const JinjaExpression& expression, JinjaScope& scope, const JinjaValue* caller);
  JinjaValue evaluate_choice(const JinjaExpression& expression, JinjaScope& scope);
  JinjaArguments arguments_of(const JinjaCallParts& call, JinjaScope& scope);
  JinjaValue& slot(const JinjaSlot& slot, JinjaScope& scope);

  const JinjaTree& tree_;
  JinjaRun& run_;
  std::unordered_map<std::string, JinjaValue> variables_;
  std::unordered_map<const JinjaExpression*, JinjaValue> constants_;
  std::string* out_ = nullptr;
};

}  // namespace lancet
