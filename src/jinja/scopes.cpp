#include "scopes.h"

#include <functional>
#include <utility>

#include "filters.h"
#include "lancet/core/strings.h"
#include "lancet/jinja/jinja_template.h"
#include "scope_names.h"

namespace lancet {
namespace {

[[noreturn]] void fail_in_line(int64_t line, const std::string& reason) {
  throw JinjaError(JinjaError::Cause::kTemplate, reason, line);
}

/// Is called for each name, in the order of the text, with whether it is read there.
using NameVisitor = std::function<void(const JinjaExpression&)>;

void visit_names(const JinjaExpressionPtr& expression, const NameVisitor& visit) {
  if (!expression) return;
  if (expression->operation == JinjaOperation::kName || expression->operation == JinjaOperation::kTarget ||
      expression->operation == JinjaOperation::kNamespaceTarget)
    visit(*expression);
  for (const JinjaExpressionPtr& part : expression->parts) visit_names(part, visit);
  for (const JinjaExpressionPtr& part : expression->call.positional) visit_names(part, visit);
  for (const auto& [name, part] : expression->call.named) visit_names(part, visit);
  visit_names(expression->call.list, visit);
  visit_names(expression->call.map, visit);
}

void visit_all_names(const JinjaBody& body, const NameVisitor& visit) {
  for (const auto& statement : body) {
    for (const JinjaExpressionPtr& target : statement->targets) visit_names(target, visit);
    for (const JinjaExpressionPtr& expression : statement->expressions) visit_names(expression, visit);
    for (const JinjaParameter& parameter : statement->function.parameters) {
      JinjaExpression name;
      name.operation = JinjaOperation::kTarget;
      name.name = parameter.name;
      name.constant = true;  // the name of a parameter
      visit(name);
      visit_names(parameter.fallback, visit);
    }
    for (const JinjaBody& inner : statement->bodies) visit_all_names(inner, visit);
    visit_names(statement->test, visit);
  }
}

/// Whether the body reads the name before it sets it.
bool reads_first(const JinjaBody& body, const std::string& name) {
  bool reads = false, is_set = false;
  visit_all_names(body, [&](const JinjaExpression& found) {
    if (found.name != name) return;
    if (found.operation != JinjaOperation::kName) is_set = true;
    reads = reads || !is_set;
  });
  return reads;
}

// First, collects what a scope's statements read and set, without statements in scopes of their own.

void collect_names(const JinjaExpressionPtr& expression, JinjaScopeNames& names) {
  visit_names(expression, [&](const JinjaExpression& found) {
    if (found.operation == JinjaOperation::kTarget) {
      names.set(found.name);
    } else {
      names.read(found.name);
    }
  });
}

void collect_parameters(const JinjaExpressionPtr& target, JinjaScopeNames& names) {
  visit_names(target, [&](const JinjaExpression& found) { names.add_parameter(found.name); });
}

void collect_body(const JinjaBody& body, JinjaScopeNames& names);

/// Collects the tests and bodies from the i-th on: one elif after another.
void collect_branches(const JinjaStatement& statement, JinjaScopeNames& names) {
  const size_t n_tests = statement.expressions.size();
  collect_names(statement.expressions[0], names);
  std::vector<JinjaScopeNames> branches(3, names);
  collect_body(statement.bodies[0], branches[0]);
  for (size_t i = 1; i < n_tests; ++i) {
    collect_names(statement.expressions[i], branches[1]);
    std::vector<JinjaScopeNames> inner(1, branches[1]);
    collect_body(statement.bodies[i], inner[0]);
    branches[1].merge(inner);
  }
  if (statement.bodies.size() > n_tests) collect_body(statement.bodies[n_tests], branches[2]);
  names.merge(branches);
}

void collect_statement(const JinjaStatement& statement, JinjaScopeNames& names) {
  switch (statement.action) {
    case JinjaAction::kIf:
      return collect_branches(statement, names);
    case JinjaAction::kMacro:
      return names.set(statement.text);
    case JinjaAction::kSetBlock:
      return collect_names(statement.targets[0], names);
    case JinjaAction::kPrint:
    case JinjaAction::kFor:
    case JinjaAction::kCallBlock:
    case JinjaAction::kFilterBlock:
    case JinjaAction::kWith:
    case JinjaAction::kSet:
      for (const JinjaExpressionPtr& expression : statement.expressions) collect_names(expression, names);
      if (statement.action == JinjaAction::kSet) collect_names(statement.targets[0], names);
      return;
    default:
      return;
  }
}

void collect_body(const JinjaBody& body, JinjaScopeNames& names) {
  for (const auto& statement : body) collect_statement(*statement, names);
}

JinjaExpressionPtr copy_of_target(const JinjaExpression& target) {
  auto copy = std::make_unique<JinjaExpression>();
  copy->operation = target.operation;
  copy->line = target.line;
  copy->name = target.name;
  for (const JinjaExpressionPtr& part : target.parts) copy->parts.push_back(copy_of_target(*part));
  return copy;
}

// Then resolves the place of each name, scope by scope.

/// The surroundings of a statement.
struct Frame {
  JinjaScopeNames& names;
  bool is_soft = false;  ///< inside an `if`: an unknown filter is an error only when it is used
};

void resolve_body(const JinjaBody& body, Frame frame);

void resolve(const JinjaExpressionPtr& expression, Frame frame) {
  if (!expression) return;
  JinjaExpression& here = *expression;
  switch (here.operation) {
    case JinjaOperation::kName:
    case JinjaOperation::kTarget:
    case JinjaOperation::kNamespaceTarget:
      if (const std::optional<JinjaSlot> slot = frame.names.find(here.name)) {
        here.slot = *slot;
      } else {
        fail_in_line(here.line,
                     cat(here.name, ": a filter of {% set %} cannot read a name that nothing around has read"));
      }
      break;
    case JinjaOperation::kFilter:
      if (!frame.is_soft) check_filter_name(here.name, here.line);
      break;
    case JinjaOperation::kTest:
      if (!frame.is_soft) check_test_name(here.name, here.line);
      break;
    case JinjaOperation::kChoice:
      frame.is_soft = true;
      break;
    default:
      break;
  }
  for (const JinjaExpressionPtr& part : here.parts) resolve(part, frame);
  for (const JinjaExpressionPtr& part : here.call.positional) resolve(part, frame);
  for (const auto& [name, part] : here.call.named) resolve(part, frame);
  resolve(here.call.list, frame);
  resolve(here.call.map, frame);
}

void resolve_all(const std::vector<JinjaExpressionPtr>& expressions, Frame frame) {
  for (const JinjaExpressionPtr& expression : expressions) resolve(expression, frame);
}

void refuse_set_loop(const JinjaStatement& statement) {
  const NameVisitor check = [](const JinjaExpression& found) {
    if (found.operation == JinjaOperation::kTarget && found.name == "loop" && found.constant.index() == 0)
      fail_in_line(found.line, "loop: a for loop has its own value of this name, which cannot be set");
  };
  for (const JinjaExpressionPtr& target : statement.targets) visit_names(target, check);
  for (const JinjaBody& body : statement.bodies) visit_all_names(body, check);
}

void resolve_for(JinjaStatement& statement, Frame frame) {
  refuse_set_loop(statement);
  resolve(statement.expressions[0], frame);
  JinjaScopeNames names(&frame.names);
  statement.loop_place = names.add_parameter("loop");
  collect_parameters(statement.targets[0], names);
  collect_body(statement.bodies[0], names);
  statement.scope = names.plan();
  if (statement.test) {
    JinjaScopeNames test_names(&frame.names);
    statement.test_targets.push_back(copy_of_target(*statement.targets[0]));
    collect_parameters(statement.test_targets[0], test_names);
    collect_names(statement.test, test_names);
    statement.test_scope = test_names.plan();
    resolve(statement.test_targets[0], {test_names});
    resolve(statement.test, {test_names});
  }
  resolve(statement.targets[0], {names});
  resolve_body(statement.bodies[0], {names});
  if (statement.bodies.size() < 2) return;
  JinjaScopeNames else_names(&frame.names);
  collect_body(statement.bodies[1], else_names);
  statement.else_scope = else_names.plan();
  resolve_body(statement.bodies[1], {else_names});
}

void resolve_function(JinjaStatement& statement, Frame frame) {
  JinjaScopeNames names(&frame.names);
  JinjaFunctionPlan& function = statement.function;
  const JinjaBody& body = statement.bodies[0];
  for (JinjaParameter& parameter : function.parameters) parameter.place = names.add_parameter(parameter.name);
  for (const JinjaParameter& parameter : function.parameters) collect_names(parameter.fallback, names);
  collect_body(body, names);
  const auto is_read = [&](const std::string& name, size_t& place) {
    if (!reads_first(body, name)) return false;
    for (const JinjaParameter& parameter : function.parameters) {
      if (parameter.name != name) continue;
      if (name == "caller" && !parameter.fallback)
        fail_in_line(statement.line, "caller: a parameter of this name needs a default");
      return false;
    }
    place = names.add_parameter(name);
    return true;
  };
  function.reads_caller = is_read("caller", function.caller);
  function.reads_kwargs = is_read("kwargs", function.kwargs);
  function.reads_varargs = is_read("varargs", function.varargs);
  statement.scope = names.plan();
  for (const JinjaParameter& parameter : function.parameters) resolve(parameter.fallback, {names});
  resolve_body(body, {names});
}

void resolve_block(JinjaStatement& statement, Frame frame) {
  JinjaScopeNames names(&frame.names);
  const bool is_filter = statement.action == JinjaAction::kFilterBlock;
  if (statement.action == JinjaAction::kWith) {
    for (const JinjaExpressionPtr& target : statement.targets) collect_parameters(target, names);
    resolve_all(statement.expressions, frame);
  }
  collect_body(statement.bodies[0], names);
  if (is_filter) collect_names(statement.expressions[0], names);
  statement.scope = names.plan();
  if (statement.action == JinjaAction::kWith) resolve_all(statement.targets, {names});
  if (statement.action == JinjaAction::kSetBlock) resolve_all(statement.targets, frame);
  if (statement.action != JinjaAction::kWith) resolve_all(statement.expressions, {names});
  resolve_body(statement.bodies[0], {names});
}

void resolve_statement(JinjaStatement& statement, Frame frame) {
  switch (statement.action) {
    case JinjaAction::kIf:
      frame.is_soft = true;
      resolve_all(statement.expressions, frame);
      for (const JinjaBody& body : statement.bodies) resolve_body(body, frame);
      return;
    case JinjaAction::kFor:
      return resolve_for(statement, frame);
    case JinjaAction::kMacro:
      resolve_function(statement, frame);
      statement.slot = *frame.names.find(statement.text);
      return;
    case JinjaAction::kCallBlock:
      resolve_function(statement, frame);
      return resolve_all(statement.expressions, frame);
    case JinjaAction::kSetBlock:
    case JinjaAction::kFilterBlock:
    case JinjaAction::kWith:
      return resolve_block(statement, frame);
    default:
      resolve_all(statement.expressions, frame);
      return resolve_all(statement.targets, frame);
  }
}

void resolve_body(const JinjaBody& body, Frame frame) {
  for (const auto& statement : body) resolve_statement(*statement, frame);
}

}  // namespace

JinjaTree resolve_names(JinjaBody body) {
  if (reads_first(body, "self")) fail_in_line(1, "self: lancet does not have Jinja's blocks");
  JinjaScopeNames names(nullptr);
  collect_body(body, names);
  resolve_body(body, {names});
  return {.body = std::move(body), .scope = names.plan()};
}

}  // namespace lancet
