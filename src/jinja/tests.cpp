// The tests: `value is name`.
#include <algorithm>
#include <map>

#include "arguments.h"
#include "filters.h"
#include "lancet/core/strings.h"
#include "methods.h"

namespace lancet {
namespace {

struct TestCall {
  JinjaRun& run;
  std::string_view name;
  const JinjaValue& value;
  const JinjaArguments& given;

  void expect_none() const { const JinjaBoundArguments none(run, name, given, {}); }
  /// Returns the only argument of a test besides the value.
  JinjaValue other(std::string_view parameter) const {
    return JinjaBoundArguments(run, name, given, {parameter}).need(0);
  }
};
using ValueTest = bool (*)(const TestCall&);

bool kind_test(const TestCall& call) {
  call.expect_none();
  const JinjaValue& value = call.value;
  if (call.name == "defined") return !value.is_undefined();
  if (call.name == "undefined") return value.is_undefined();
  if (call.name == "none") return value.is_none();
  if (call.name == "boolean") return value.is(JinjaKind::kBoolean);
  if (call.name == "true") return value.is(JinjaKind::kBoolean) && value.integer() != 0;
  if (call.name == "false") return value.is(JinjaKind::kBoolean) && value.integer() == 0;
  if (call.name == "integer") return value.is(JinjaKind::kInteger);
  if (call.name == "float") return value.is(JinjaKind::kFloat);
  if (call.name == "number") return value.is_number();
  if (call.name == "string") return value.is_text();
  if (call.name == "mapping") return value.is(JinjaKind::kDict);
  if (call.name == "iterable") return is_iterable(value);
  if (call.name == "escaped") return value.is_safe_text();
  if (call.name == "callable")
    return value.is(JinjaKind::kFunction) || value.is(JinjaKind::kLoop) || value.is_undefined();
  return has_length(value) && !value.is(JinjaKind::kView) && !value.is(JinjaKind::kLoop);  // sequence
}

bool parity_test(const TestCall& call) {
  call.expect_none();
  const JinjaValue rest = arithmetic(call.run, "%", call.value, JinjaValue::of(int64_t{2}));
  return are_equal(call.run, rest, JinjaValue::of(int64_t{call.name == "odd" ? 1 : 0}));
}

bool divisible_test(const TestCall& call) {
  return are_equal(call.run, arithmetic(call.run, "%", call.value, call.other("num")), JinjaValue::of(int64_t{0}));
}

bool case_test(const TestCall& call) {
  call.expect_none();
  const JinjaValue text = call.run.text(text_of(call.run, call.value));
  return is_true(call.run, call_text_method(call.run, text, call.name == "lower" ? "islower" : "isupper", {}));
}

bool name_test(const TestCall& call) {
  call.expect_none();
  if (!call.value.is_text()) return false;
  return call.name == "filter" ? has_filter(call.value.text()) : has_test(call.value.text());
}

/// Whether both are the same object. In Python this is true for equal small numbers; for other numbers and for texts it
/// depends on chance.
bool same_test(const TestCall& call) {
  const JinjaValue other = call.other("other");
  const JinjaValue& value = call.value;
  if (value.kind() != other.kind()) return false;
  if (value.is_none()) return true;
  if (value.is(JinjaKind::kBoolean)) return value.integer() == other.integer();
  constexpr int64_t kLeastKept = -5, kMostKept = 256;
  if (value.is(JinjaKind::kInteger)) {
    if (value.integer() != other.integer()) return false;
    if (value.integer() >= kLeastKept && value.integer() <= kMostKept) return true;
  } else if (!value.is(JinjaKind::kFloat) && value.object() == other.object()) {
    return true;
  } else if (!value.is_text() && !value.is(JinjaKind::kFloat)) {
    return false;
  } else if (!are_equal(call.run, value, other)) {
    return false;
  }
  call.run.fail("sameas of equal numbers or texts: whether these are one object is chance; write ==");
}

bool order_test(const TestCall& call) {
  static const std::map<std::string_view, std::string_view> kOrders{{"eq", "=="}, {"equalto", "=="},    {"ne", "!="},
                                                                    {"gt", ">"},  {"greaterthan", ">"}, {"ge", ">="},
                                                                    {"lt", "<"},  {"lessthan", "<"},    {"le", "<="}};
  refuse_named(call.run, call.name, call.given);
  const auto found = kOrders.find(call.name);
  return compare(call.run, found == kOrders.end() ? call.name : found->second, call.value, call.other("other"));
}

bool in_test(const TestCall& call) { return contains_value(call.run, call.other("seq"), call.value); }

const std::map<std::string_view, ValueTest>& all_tests() {
  static const std::map<std::string_view, ValueTest> kTests = [] {
    std::map<std::string_view, ValueTest> made{
        {"odd", parity_test}, {"even", parity_test}, {"divisibleby", divisible_test},
        {"lower", case_test}, {"upper", case_test},  {"filter", name_test},
        {"test", name_test},  {"sameas", same_test}, {"in", in_test}};
    for (const std::string_view name : {"defined", "undefined", "none", "boolean", "true", "false", "integer", "float",
                                        "number", "string", "mapping", "iterable", "escaped", "callable", "sequence"})
      made.emplace(name, kind_test);
    for (const std::string_view name :
         {"==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", "ge", ">=", "<", "lt", "lessthan", "<=", "le"})
      made.emplace(name, order_test);
    return made;
  }();
  return kTests;
}

std::string unknown_test(const std::string& name) { return cat("is ", name, ": Jinja has no test of this name"); }

}  // namespace

bool has_test(const std::string& name) { return all_tests().contains(name); }

void check_test_name(const std::string& name, int64_t line) {
  if (!has_test(name)) throw JinjaError(JinjaError::Cause::kTemplate, unknown_test(name), line);
}

bool call_test(JinjaRun& run, const std::string& name, const JinjaValue& value, const JinjaArguments& arguments) {
  const JinjaRun::Level level(run);
  run.charge(1);
  const auto found = all_tests().find(name);
  if (found == all_tests().end()) run.fail(unknown_test(name));
  return found->second({run, found->first, value, arguments});
}

}  // namespace lancet
