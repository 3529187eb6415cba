// Evaluates expressions.
#include "filters.h"
#include "interpreter.h"
#include "lancet/core/strings.h"

namespace lancet {

JinjaValue& JinjaInterpreter::slot(const JinjaSlot& slot, JinjaScope& scope) {
  JinjaScope* at = &scope;
  for (size_t i = 0; i < slot.hops; ++i) at = at->outer;
  return at->values[slot.place];
}

JinjaValue JinjaInterpreter::evaluate(const JinjaExpression& expression, JinjaScope& scope) {
  const JinjaRun::Level level(run_);
  run_.charge(1);
  run_.enter_line(expression.line);
  const auto part = [&](size_t i) { return evaluate(*expression.parts[i], scope); };
  switch (expression.operation) {
    case JinjaOperation::kConstant:
      return evaluate_constant(expression);
    case JinjaOperation::kName:
      return evaluate_name(expression, scope);
    case JinjaOperation::kTuple:
    case JinjaOperation::kList:
      return evaluate_list(expression, scope);
    case JinjaOperation::kDict:
      return evaluate_dict(expression, scope);
    case JinjaOperation::kNot:
      return JinjaValue::of(!is_true(run_, part(0)));
    case JinjaOperation::kMinus:
      return negative(run_, part(0));
    case JinjaOperation::kPlus:
      return positive(run_, part(0));
    case JinjaOperation::kAnd:
    case JinjaOperation::kOr: {
      const JinjaValue left = part(0);
      return is_true(run_, left) == (expression.operation == JinjaOperation::kOr) ? left : part(1);
    }
    case JinjaOperation::kArithmetic: {
      const JinjaValue left = part(0), right = part(1);
      run_.enter_line(expression.line);
      return arithmetic(run_, expression.name, left, right);
    }
    case JinjaOperation::kConcat:
      return evaluate_concat(expression, scope);
    case JinjaOperation::kCompare:
      return evaluate_compare(expression, scope);
    case JinjaOperation::kAttribute: {
      const JinjaValue value = part(0);
      run_.enter_line(expression.line);
      return attribute_of(run_, value, expression.name);
    }
    case JinjaOperation::kItem:
      return evaluate_item(expression, scope);
    case JinjaOperation::kFilter:
      return evaluate_filter(expression, scope, nullptr);
    case JinjaOperation::kTest: {
      const JinjaValue value = part(0);
      const JinjaArguments arguments = arguments_of(expression.call, scope);
      run_.enter_line(expression.line);
      return JinjaValue::of(call_test(run_, expression.name, value, arguments));
    }
    case JinjaOperation::kCall:
      return evaluate_call(expression, scope, nullptr);
    case JinjaOperation::kChoice:
      return evaluate_choice(expression, scope);
    default:
      run_.fail("an expression that has no value");
  }
}

JinjaValue JinjaInterpreter::evaluate_constant(const JinjaExpression& expression) {
  if (const bool* truth = std::get_if<bool>(&expression.constant)) return JinjaValue::of(*truth);
  if (const int64_t* integer = std::get_if<int64_t>(&expression.constant)) return JinjaValue::of(*integer);
  if (const double* real = std::get_if<double>(&expression.constant)) return JinjaValue::of(*real);
  if (!std::holds_alternative<std::string>(expression.constant)) return JinjaValue::none();
  JinjaValue& made = constants_[&expression];
  if (made.is_missing()) made = run_.text(std::get<std::string>(expression.constant));
  return made;
}

JinjaValue JinjaInterpreter::evaluate_name(const JinjaExpression& expression, JinjaScope& scope) {
  const JinjaValue value = slot(expression.slot, scope);
  return value.is_missing() ? run_.undefined(cat("'", expression.name, "' is undefined")) : value;
}

JinjaValue JinjaInterpreter::evaluate_list(const JinjaExpression& expression, JinjaScope& scope) {
  std::vector<JinjaValue> items;
  for (const JinjaExpressionPtr& part : expression.parts) items.push_back(evaluate(*part, scope));
  return expression.operation == JinjaOperation::kList ? run_.list(std::move(items)) : run_.tuple(std::move(items));
}

JinjaValue JinjaInterpreter::evaluate_dict(const JinjaExpression& expression, JinjaScope& scope) {
  JinjaDict& made = run_.make<JinjaDict>();
  for (size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
    const JinjaValue key = evaluate(*expression.parts[i], scope);
    run_.put(made, key, evaluate(*expression.parts[i + 1], scope));
  }
  return {JinjaKind::kDict, &made};
}

JinjaValue JinjaInterpreter::evaluate_compare(const JinjaExpression& expression, JinjaScope& scope) {
  JinjaValue left = evaluate(*expression.parts[0], scope);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    const JinjaValue right = evaluate(*expression.parts[i + 1], scope);
    run_.enter_line(expression.line);
    if (!compare(run_, expression.operators[i], left, right)) return JinjaValue::of(false);
    left = right;
  }
  return JinjaValue::of(true);
}

JinjaValue JinjaInterpreter::evaluate_concat(const JinjaExpression& expression, JinjaScope& scope) {
  std::vector<JinjaValue> values;
  for (const JinjaExpressionPtr& part : expression.parts) values.push_back(evaluate(*part, scope));
  std::string made;
  for (const JinjaValue& value : values) {
    const std::string text = text_of(run_, value);
    run_.charge_memory(static_cast<int64_t>(text.size()));
    made += text;
  }
  return run_.text(std::move(made));
}

JinjaValue JinjaInterpreter::evaluate_item(const JinjaExpression& expression, JinjaScope& scope) {
  const JinjaValue value = evaluate(*expression.parts[0], scope);
  const JinjaExpression& key = *expression.parts[1];
  if (key.operation != JinjaOperation::kSlice) {
    const JinjaValue found = evaluate(key, scope);
    run_.enter_line(expression.line);
    return item_of(run_, value, found);
  }
  const auto part = [&](size_t i) { return key.parts[i] ? evaluate(*key.parts[i], scope) : JinjaValue::none(); };
  const JinjaValue start = part(0), stop = part(1), step = part(2);
  run_.enter_line(expression.line);
  return slice_of(run_, value, start, stop, step);
}

JinjaValue JinjaInterpreter::evaluate_filter(const JinjaExpression& expression, JinjaScope& scope,
                                             const JinjaValue* block) {
  const JinjaRun::Level level(run_);
  JinjaValue value;
  if (!expression.parts[0]) {
    value = *block;
  } else {
    const JinjaExpression& inner = *expression.parts[0];
    value = block != nullptr && inner.operation == JinjaOperation::kFilter ? evaluate_filter(inner, scope, block)
                                                                           : evaluate(inner, scope);
  }
  const JinjaArguments arguments = arguments_of(expression.call, scope);
  run_.enter_line(expression.line);
  return call_filter(run_, expression.name, value, arguments);
}

JinjaArguments JinjaInterpreter::arguments_of(const JinjaCallParts& call, JinjaScope& scope) {
  JinjaArguments made;
  for (const JinjaExpressionPtr& part : call.positional) made.positional.push_back(evaluate(*part, scope));
  if (call.list)
    for (const JinjaValue& item : items_of(run_, evaluate(*call.list, scope))) made.positional.push_back(item);
  for (const auto& [name, part] : call.named) made.named.emplace_back(name, evaluate(*part, scope));
  if (!call.map) return made;
  const JinjaValue map = evaluate(*call.map, scope);
  if (!map.is(JinjaKind::kDict)) run_.fail(cat("**: expected a dict, got ", shown_type(map)));
  for (const JinjaDict::Entry& entry : map.dict().entries) {
    if (!entry.key.is_text()) run_.fail("**: expected keys that are texts");
    for (const auto& [name, value] : made.named)
      if (name == entry.key.text()) run_.fail(cat(name, ": given twice"));
    made.named.emplace_back(entry.key.text(), entry.value);
  }
  return made;
}

JinjaValue JinjaInterpreter::evaluate_call(const JinjaExpression& expression, JinjaScope& scope,
                                           const JinjaValue* caller) {
  const JinjaValue function = evaluate(*expression.parts[0], scope);
  JinjaArguments arguments = arguments_of(expression.call, scope);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  run_.enter_line(expression.line);
  return call_value(run_, function, arguments);
}

JinjaValue JinjaInterpreter::evaluate_choice(const JinjaExpression& expression, JinjaScope& scope) {
  if (is_true(run_, evaluate(*expression.parts[0], scope))) return evaluate(*expression.parts[1], scope);
  if (expression.parts[2]) return evaluate(*expression.parts[2], scope);
  return run_.undefined("an `if` without `else` in an expression, whose condition does not hold");
}

}  // namespace lancet
