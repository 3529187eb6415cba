#include "interpreter.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "filters.h"
#include "globals.h"
#include "lancet/core/strings.h"
#include "loops.h"

namespace lancet {
namespace {

/// Sends the output to a separate text while it exists.
class CapturedOutput {
 public:
  explicit CapturedOutput(std::string*& out) : out_(out), before_(std::exchange(out, &text_)) {}
  ~CapturedOutput() { out_ = before_; }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::string*& out_;
  std::string* before_;
};

}  // namespace

JinjaInterpreter::JinjaInterpreter(const JinjaTree& tree, JinjaRun& run, const JinjaDataMap& variables)
    : tree_(tree), run_(run) {
  for (const auto& [name, value] : variables) variables_.emplace(name, run_.data(value));
}

std::string JinjaInterpreter::render() {
  CapturedOutput output(out_);
  JinjaScope& scope = begin_scope(tree_.scope, nullptr);
  run_body(tree_.body, scope);
  return output.take();
}

JinjaScope& JinjaInterpreter::begin_scope(const JinjaScopePlan& plan, JinjaScope* outer) {
  JinjaScope& scope = run_.make<JinjaScope>(plan.loads.size() * sizeof(JinjaValue));
  scope.outer = outer;
  scope.values.resize(plan.loads.size());
  for (size_t i = 0; i < plan.loads.size(); ++i) {
    const JinjaLoad& load = plan.loads[i];
    if (load.kind == JinjaLoad::Kind::kOuter) scope.values[i] = slot(load.outer, *outer);
    if (load.kind != JinjaLoad::Kind::kVariable) continue;
    if (const auto found = variables_.find(load.name); found != variables_.end()) {
      scope.values[i] = found->second;
    } else if (const std::optional<JinjaValue> global = find_global(run_, load.name)) {
      scope.values[i] = *global;
    }
  }
  return scope;
}

void JinjaInterpreter::write(std::string_view text) {
  run_.charge_memory(static_cast<int64_t>(text.size()));
  *out_ += text;
}

/// Writes what jinja2 writes unchanged, which can only be texts.
void JinjaInterpreter::write_text_value(const JinjaValue& value) {
  if (!value.is_text()) run_.fail(cat("a call or filter block that gives ", shown_type(value), ", expected a text"));
  write(value.text());
}

JinjaInterpreter::Flow JinjaInterpreter::run_body(const JinjaBody& body, JinjaScope& scope) {
  for (const auto& statement : body)
    if (const Flow flow = run_statement(*statement, scope); flow != Flow::kOn) return flow;
  return Flow::kOn;
}

JinjaInterpreter::Flow JinjaInterpreter::run_statement(const JinjaStatement& statement, JinjaScope& scope) {
  const JinjaRun::Level level(run_);
  run_.enter_line(statement.line);
  run_.charge(1);
  switch (statement.action) {
    case JinjaAction::kText:
      write(statement.text);
      return Flow::kOn;
    case JinjaAction::kPrint:
      for (const JinjaExpressionPtr& expression : statement.expressions)
        write(text_of(run_, evaluate(*expression, scope)));
      return Flow::kOn;
    case JinjaAction::kIf:
      return run_if(statement, scope);
    case JinjaAction::kFor:
      return run_for(statement, scope);
    case JinjaAction::kSet:
      check_namespaces(*statement.targets[0], scope);
      assign(*statement.targets[0], evaluate(*statement.expressions[0], scope), scope);
      return Flow::kOn;
    case JinjaAction::kMacro:
      slot(statement.slot, scope) = make_function(statement, scope);
      return Flow::kOn;
    case JinjaAction::kCallBlock:
      run_call_block(statement, scope);
      return Flow::kOn;
    case JinjaAction::kSetBlock:
    case JinjaAction::kFilterBlock:
    case JinjaAction::kWith:
      return run_block(statement, scope);
    case JinjaAction::kBreak:
      return Flow::kBreak;
    case JinjaAction::kContinue:
      return Flow::kContinue;
    case JinjaAction::kNoLoader:
      run_.fail(cat("{% ", statement.text, " %}: a chat template has no other templates beside it"));
  }
  return Flow::kOn;
}

JinjaInterpreter::Flow JinjaInterpreter::run_if(const JinjaStatement& statement, JinjaScope& scope) {
  for (size_t i = 0; i < statement.expressions.size(); ++i)
    if (is_true(run_, evaluate(*statement.expressions[i], scope))) return run_body(statement.bodies[i], scope);
  const bool has_else = statement.bodies.size() > statement.expressions.size();
  return has_else ? run_body(statement.bodies.back(), scope) : Flow::kOn;
}

JinjaInterpreter::Flow JinjaInterpreter::run_for(const JinjaStatement& statement, JinjaScope& scope) {
  return run_items(statement, scope, evaluate(*statement.expressions[0], scope), 0);
}

JinjaValue JinjaInterpreter::target_value(const JinjaExpression& target, JinjaScope& scope) {
  if (target.operation == JinjaOperation::kTarget) return slot(target.slot, scope);
  std::vector<JinjaValue> values;
  for (const JinjaExpressionPtr& part : target.parts) values.push_back(target_value(*part, scope));
  return run_.tuple(std::move(values));
}

/// Returns the items for which the loop's `if` is true. It is evaluated while the loop runs, so it sees the changes
/// that the body made.
JinjaIterator& JinjaInterpreter::tested(const JinjaStatement& statement, JinjaScope& outer, JinjaIterator& items) {
  JinjaIterator& made = run_.make<JinjaIterator>();
  JinjaScope* scope = nullptr;
  made.next = [this, &statement, &outer, &items, scope]() mutable -> std::optional<JinjaValue> {
    if (scope == nullptr) scope = &begin_scope(statement.test_scope, &outer);
    const JinjaExpression& target = *statement.test_targets[0];
    while (const std::optional<JinjaValue> item = items.next()) {
      run_.charge(1);
      assign(target, *item, *scope);
      if (is_true(run_, evaluate(*statement.test, *scope))) return target_value(target, *scope);
    }
    return std::nullopt;
  };
  return made;
}

JinjaLoop& JinjaInterpreter::make_loop(const JinjaStatement& statement, JinjaScope& scope, const JinjaValue& items,
                                       int64_t depth) {
  JinjaLoop& loop = run_.make<JinjaLoop>();
  loop.source = &iterate(run_, items);
  loop.depth0 = depth;
  if (statement.test) {
    loop.source = &tested(statement, scope, *loop.source);
  } else if (has_length(items)) {
    loop.known_length = length_of(run_, items);
  }
  if (statement.is_recursive)
    loop.recurse = [this, &statement, &scope, depth](const JinjaValue& inner) {
      CapturedOutput output(out_);
      run_items(statement, scope, inner, depth + 1);
      return run_.text(output.take());
    };
  return loop;
}

JinjaInterpreter::Flow JinjaInterpreter::run_items(const JinjaStatement& statement, JinjaScope& scope,
                                                   const JinjaValue& items, int64_t depth) {
  const JinjaRun::Level level(run_);
  JinjaLoop& loop = make_loop(statement, scope, items, depth);
  bool has_finished_one = false;  // as in jinja2: an item that `continue` skipped does not count
  while (const std::optional<JinjaValue> item = advance_loop(run_, loop)) {
    JinjaScope& inner = begin_scope(statement.scope, &scope);
    inner.values[statement.loop_place] = JinjaValue(JinjaKind::kLoop, &loop);
    assign(*statement.targets[0], *item, inner);
    const Flow flow = run_body(statement.bodies[0], inner);
    if (flow == Flow::kBreak) break;
    has_finished_one = has_finished_one || flow == Flow::kOn;
  }
  if (has_finished_one || statement.bodies.size() < 2) return Flow::kOn;
  return run_body(statement.bodies[1], begin_scope(statement.else_scope, &scope));
}

JinjaInterpreter::Flow JinjaInterpreter::run_block(const JinjaStatement& statement, JinjaScope& scope) {
  JinjaScope& inner = begin_scope(statement.scope, &scope);
  if (statement.action == JinjaAction::kWith) {
    for (size_t i = 0; i < statement.targets.size(); ++i)
      assign(*statement.targets[i], evaluate(*statement.expressions[i], scope), inner);
    return run_body(statement.bodies[0], inner);
  }
  std::string text;
  {
    CapturedOutput output(out_);
    if (const Flow flow = run_body(statement.bodies[0], inner); flow != Flow::kOn) return flow;
    text = output.take();
  }
  JinjaValue value = run_.text(std::move(text));
  const JinjaExpressionPtr& filter = statement.expressions[0];
  if (statement.action == JinjaAction::kFilterBlock) {
    write_text_value(evaluate_filter(*filter, inner, &value));
    return Flow::kOn;
  }
  check_namespaces(*statement.targets[0], scope);
  assign(*statement.targets[0], filter ? evaluate_filter(*filter, inner, &value) : value, scope);
  return Flow::kOn;
}

void JinjaInterpreter::run_call_block(const JinjaStatement& statement, JinjaScope& scope) {
  const JinjaValue caller = make_function(statement, scope);
  if (!statement.expressions.empty()) return write_text_value(evaluate_call(*statement.expressions[0], scope, &caller));
  JinjaArguments none;
  write_text_value(call_value(run_, caller, none));
}

JinjaValue JinjaInterpreter::make_function(const JinjaStatement& statement, JinjaScope& scope) {
  JinjaFunction& made = run_.make<JinjaFunction>();
  made.name = statement.action == JinjaAction::kMacro ? statement.text : "";
  made.macro = &statement;
  made.call = [this, &statement, &scope](JinjaArguments& given) {
    return run_.text(call_function(statement, scope, given));
  };
  return {JinjaKind::kFunction, &made};
}

std::string JinjaInterpreter::call_function(const JinjaStatement& statement, JinjaScope& outer, JinjaArguments& given) {
  JinjaScope& scope = begin_scope(statement.scope, &outer);
  bind_parameters(statement, scope, given);
  CapturedOutput output(out_);
  for (const JinjaParameter& parameter : statement.function.parameters) {
    JinjaValue& value = scope.values[parameter.place];
    if (!value.is_missing()) continue;
    value = parameter.fallback
                ? evaluate(*parameter.fallback, scope)
                : run_.undefined(cat("the parameter ", parameter.name, " of ", statement.text, " was not given"));
  }
  run_body(statement.bodies[0], scope);
  return output.take();
}

void JinjaInterpreter::bind_parameters(const JinjaStatement& statement, JinjaScope& scope, JinjaArguments& given) {
  const JinjaFunctionPlan& function = statement.function;
  const std::string who = statement.text.empty() ? "caller" : statement.text;
  const auto take = [&](const std::string& name) -> std::optional<JinjaValue> {
    const auto found = std::ranges::find(given.named, name, [](const auto& one) { return one.first; });
    if (found == given.named.end()) return std::nullopt;
    const JinjaValue value = found->second;
    given.named.erase(found);
    return value;
  };
  const size_t n_places = std::min(given.positional.size(), function.parameters.size());
  for (size_t i = 0; i < n_places; ++i) scope.values[function.parameters[i].place] = given.positional[i];
  for (size_t i = n_places; i < function.parameters.size(); ++i)
    if (const std::optional<JinjaValue> value = take(function.parameters[i].name))
      scope.values[function.parameters[i].place] = *value;
  if (function.reads_caller) {
    const std::optional<JinjaValue> caller = take("caller");
    scope.values[function.caller] =
        caller && !caller->is_none() ? *caller : run_.undefined("caller: no {% call %} around");
  }
  if (function.reads_kwargs) {
    JinjaDict& rest = run_.make<JinjaDict>();
    for (const auto& [name, value] : given.named) run_.put(rest, run_.text(name), value);
    scope.values[function.kwargs] = JinjaValue(JinjaKind::kDict, &rest);
  } else if (!given.named.empty()) {
    run_.fail(cat(who, ": no parameter of the name ", given.named.front().first));
  }
  if (function.reads_varargs) {
    scope.values[function.varargs] =
        run_.tuple({given.positional.begin() + static_cast<ptrdiff_t>(n_places), given.positional.end()});
  } else if (given.positional.size() > n_places) {
    run_.fail(cat(who, ": expected at most ", counted(function.parameters.size(), "value"), ", got ",
                  given.positional.size()));
  }
}

void JinjaInterpreter::check_namespaces(const JinjaExpression& target, JinjaScope& scope) {
  if (target.operation == JinjaOperation::kNamespaceTarget && !slot(target.slot, scope).is(JinjaKind::kNamespace))
    run_.fail(
        cat(target.name, ".", std::get<std::string>(target.constant), ": only what namespace() made can be set so"));
  for (const JinjaExpressionPtr& part : target.parts) check_namespaces(*part, scope);
}

void JinjaInterpreter::assign(const JinjaExpression& target, const JinjaValue& value, JinjaScope& scope) {
  if (target.operation == JinjaOperation::kTarget) {
    slot(target.slot, scope) = value;
    return;
  }
  if (target.operation == JinjaOperation::kNamespaceTarget)
    return run_.put(slot(target.slot, scope).dict(), run_.text(std::get<std::string>(target.constant)), value);
  const std::vector<JinjaValue> values = items_of(run_, value);
  if (values.size() != target.parts.size())
    run_.fail(cat("expected ", target.parts.size(), " values for as many names, got ", values.size()));
  for (size_t i = 0; i < values.size(); ++i) assign(*target.parts[i], values[i], scope);
}

}  // namespace lancet
