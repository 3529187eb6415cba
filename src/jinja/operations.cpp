#include "operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "characters.h"
#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr int64_t kLargestInteger = std::numeric_limits<int64_t>::max();

[[noreturn]] void fail_types(JinjaRun& run, std::string_view sign, const JinjaValue& left, const JinjaValue& right) {
  for (const JinjaValue* value : {&left, &right})
    if (value->is_undefined()) run.fail_undefined(*value);
  run.fail(cat("'", sign, "' between ", shown_type(left), " and ", shown_type(right)));
}

[[noreturn]] void fail_overflow(JinjaRun& run) { run.fail("a whole number beyond 64 bits, in which lancet counts"); }

std::partial_ordering order_numbers(const JinjaValue& left, const JinjaValue& right) {
  if (left.is_whole() && right.is_whole()) return left.integer() <=> right.integer();
  const auto wide = [](const JinjaValue& value) {  // this type has all digits of both
    return value.is_whole() ? static_cast<long double>(value.integer()) : static_cast<long double>(value.real());
  };
  return wide(left) <=> wide(right);
}

std::partial_ordering order_of(JinjaRun& run, std::string_view sign, const JinjaValue& left, const JinjaValue& right) {
  const JinjaRun::Level level(run);
  run.charge(1);
  if (left.is_number() && right.is_number()) return order_numbers(left, right);
  if (left.is_text() && right.is_text()) {
    run.charge_bytes(std::min(left.text().size(), right.text().size()));
    return left.text() <=> right.text();  // the order of UTF-8 is the order of characters
  }
  if (!left.is_sequence() || left.kind() != right.kind()) fail_types(run, sign, left, right);
  const size_t both = std::min(left.items().size(), right.items().size());
  for (size_t i = 0; i < both; ++i)
    if (!are_equal(run, left.items()[i], right.items()[i]))
      return order_of(run, sign, left.items()[i], right.items()[i]);
  return left.items().size() <=> right.items().size();
}

bool are_equal_dicts(JinjaRun& run, const JinjaDict& left, const JinjaDict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  for (const auto& [key, place] : left.places) {
    const JinjaValue* other = right.find(key);
    if (other == nullptr || !are_equal(run, left.entries[place].value, *other)) return false;
  }
  return true;
}

/// Returns the sum, difference or product.
JinjaValue whole_result(JinjaRun& run, std::string_view sign, int64_t left, int64_t right) {
  int64_t result = 0;
  const bool overflows = sign == "+"   ? __builtin_add_overflow(left, right, &result)
                         : sign == "-" ? __builtin_sub_overflow(left, right, &result)
                                       : __builtin_mul_overflow(left, right, &result);
  if (overflows) fail_overflow(run);
  return JinjaValue::of(result);
}

int64_t floor_division(int64_t left, int64_t right) {
  const int64_t quotient = left / right;
  return left % right != 0 && (left % right < 0) != (right < 0) ? quotient - 1 : quotient;
}

double float_modulo(double left, double right) {
  const double rest = std::fmod(left, right);
  if (rest == 0) return std::copysign(0.0, right);
  return (rest < 0) != (right < 0) ? rest + right : rest;
}

/// Computes CPython's float_divmod: subtracts the modulo, divides, and rounds to the nearest whole number.
double float_floor_division(double left, double right) {
  const double rest = std::fmod(left, right);
  double quotient = (left - rest) / right;
  if (rest != 0 && (right < 0) != (rest < 0)) quotient -= 1.0;
  if (quotient == 0) return std::copysign(0.0, left / right);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

JinjaValue whole_power(JinjaRun& run, int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    if (base == 0 || base == 1 || (base == -1 && i > 0)) {  // further factors change nothing, or only the sign
      if (base == -1) return JinjaValue::of(int64_t{exponent % 2 == 0 ? 1 : -1});
      return JinjaValue::of(base);
    }
    if (__builtin_mul_overflow(result, base, &result)) fail_overflow(run);
  }
  return JinjaValue::of(result);
}

JinjaValue power(JinjaRun& run, const JinjaValue& left, const JinjaValue& right) {
  if (left.is_whole() && right.is_whole() && right.integer() >= 0)
    return whole_power(run, left.integer(), right.integer());
  if (left.real() == 0 && right.real() < 0) run.fail("0 to a negative power");
  if (left.real() < 0 && std::isfinite(right.real()) && right.real() != std::trunc(right.real()))
    run.fail("a root of a negative number");
  const double result = std::pow(left.real(), right.real());
  if (std::isinf(result) && std::isfinite(left.real()) && std::isfinite(right.real())) run.fail("a power too large");
  return JinjaValue::of(result);
}

JinjaValue number_arithmetic(JinjaRun& run, std::string_view sign, const JinjaValue& left, const JinjaValue& right) {
  if (sign == "**") return power(run, left, right);
  const bool divides = sign == "/" || sign == "//" || sign == "%";
  if (divides && right.real() == 0) run.fail("a division by zero");
  if (left.is_whole() && right.is_whole() && sign != "/") {
    const int64_t a = left.integer(), b = right.integer();
    if (!divides) return whole_result(run, sign, a, b);
    if (b == -1) {  // dividing the smallest number would overflow
      if (sign == "%") return JinjaValue::of(int64_t{0});
      return whole_result(run, "-", 0, a);
    }
    const int64_t quotient = floor_division(a, b);
    return JinjaValue::of(sign == "//" ? quotient : a - quotient * b);
  }
  const double a = left.real(), b = right.real();
  if (sign == "+") return JinjaValue::of(a + b);
  if (sign == "-") return JinjaValue::of(a - b);
  if (sign == "*") return JinjaValue::of(a * b);
  if (sign == "/") return JinjaValue::of(a / b);
  return JinjaValue::of(sign == "//" ? float_floor_division(a, b) : float_modulo(a, b));
}

JinjaValue repeated(JinjaRun& run, const JinjaValue& value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const size_t size = value.is_text() ? value.text().size() : value.items().size() * sizeof(JinjaValue);
  if (size > 0 && times > kLargestInteger / static_cast<int64_t>(size)) run.charge_memory(kLargestInteger / 2);
  run.charge_memory(static_cast<int64_t>(size) * times);  // before it is allocated
  if (value.is_text()) {
    std::string text;
    if (size > 0)
      for (int64_t i = 0; i < times; ++i) text += value.text();
    return run.text_like(value, std::move(text));
  }
  std::vector<JinjaValue> items;
  if (size > 0)
    for (int64_t i = 0; i < times; ++i) items.insert(items.end(), value.items().begin(), value.items().end());
  return value.is(JinjaKind::kList) ? run.list(std::move(items)) : run.tuple(std::move(items));
}

JinjaValue joined(JinjaRun& run, const JinjaValue& left, const JinjaValue& right) {
  if (left.is_text()) {
    run.charge_memory(static_cast<int64_t>(left.text().size() + right.text().size()));
    if (left.is_safe_text() == right.is_safe_text()) return run.text_like(left, left.text() + right.text());
    return run.safe_text((left.is_safe_text() ? left.text() : escaped_html(left.text())) +
                         (right.is_safe_text() ? right.text() : escaped_html(right.text())));
  }
  std::vector<JinjaValue> items = left.items();
  items.insert(items.end(), right.items().begin(), right.items().end());
  return left.is(JinjaKind::kList) ? run.list(std::move(items)) : run.tuple(std::move(items));
}

}  // namespace

std::string_view type_name(const JinjaValue& value) {
  switch (value.kind()) {
    case JinjaKind::kUndefined:
      return "Undefined";
    case JinjaKind::kMissing:
    case JinjaKind::kNone:
      return "NoneType";
    case JinjaKind::kBoolean:
      return "bool";
    case JinjaKind::kInteger:
      return "int";
    case JinjaKind::kFloat:
      return "float";
    case JinjaKind::kText:
      return value.is_safe_text() ? "Markup" : "str";
    case JinjaKind::kList:
      return "list";
    case JinjaKind::kTuple:
      return "tuple";
    case JinjaKind::kDict:
      return "dict";
    case JinjaKind::kNamespace:
      return "Namespace";
    case JinjaKind::kRange:
      return "range";
    case JinjaKind::kView:
      return "dict view";
    case JinjaKind::kIterator:
      return "iterator";
    case JinjaKind::kFunction:
      return "function";
    case JinjaKind::kLoop:
      return "LoopContext";
  }
  return "object";
}

std::string shown_type(const JinjaValue& value) { return value.is_none() ? "None" : cat(type_name(value), " object"); }

bool is_true(JinjaRun& run, const JinjaValue& value) {
  switch (value.kind()) {
    case JinjaKind::kMissing:
    case JinjaKind::kUndefined:
    case JinjaKind::kNone:
      return false;
    case JinjaKind::kBoolean:
    case JinjaKind::kInteger:
      return value.integer() != 0;
    case JinjaKind::kFloat:
      return value.real() != 0;
    default:
      return !has_length(value) || length_of(run, value) > 0;
  }
}

bool are_equal(JinjaRun& run, const JinjaValue& left, const JinjaValue& right) {
  run.charge(1);
  if (left.is_number() && right.is_number()) return order_numbers(left, right) == 0;
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case JinjaKind::kText:
      run.charge_bytes(std::min(left.text().size(), right.text().size()));
      return left.text() == right.text();
    case JinjaKind::kList:
    case JinjaKind::kTuple: {
      const JinjaRun::Level level(run);
      return std::ranges::equal(left.items(), right.items(),
                                [&](const JinjaValue& a, const JinjaValue& b) { return are_equal(run, a, b); });
    }
    case JinjaKind::kDict: {
      const JinjaRun::Level level(run);
      return are_equal_dicts(run, left.dict(), right.dict());
    }
    case JinjaKind::kRange:
      return run.key_of(left) == run.key_of(right);
    case JinjaKind::kNone:
    case JinjaKind::kUndefined:
      return true;
    case JinjaKind::kView:
      if (left.object() != right.object()) run.fail("lancet does not compare what keys(), values() and items() give");
      return true;
    default:
      return left.object() == right.object();
  }
}

bool compare(JinjaRun& run, std::string_view sign, const JinjaValue& left, const JinjaValue& right) {
  if (sign == "==") return are_equal(run, left, right);
  if (sign == "!=") return !are_equal(run, left, right);
  if (sign == "in") return contains_value(run, right, left);
  if (sign == "not in") return !contains_value(run, right, left);
  const std::partial_ordering order = order_of(run, sign, left, right);
  if (sign == "<") return order < 0;
  if (sign == "<=") return order <= 0;
  return sign == ">" ? order > 0 : order >= 0;
}

bool contains_value(JinjaRun& run, const JinjaValue& container, const JinjaValue& item) {
  switch (container.kind()) {
    case JinjaKind::kText:
      if (!item.is_text()) run.fail(cat("'in' of a text: expected a text, got ", shown_type(item)));
      return find_part(run, container.text(), item.text(), 0) != std::string::npos;
    case JinjaKind::kDict: {
      const std::optional<std::string> key = run.key_of(item);
      if (!key) run.fail(cat("'in' of a dict: ", shown_type(item), " can be no key"));
      return container.dict().find(*key) != nullptr;
    }
    case JinjaKind::kList:
    case JinjaKind::kTuple:
      return std::ranges::any_of(container.items(), [&](const JinjaValue& one) { return are_equal(run, one, item); });
    default: {
      if (!is_iterable(container)) run.fail(cat("'in': ", shown_type(container), " has no items"));
      JinjaIterator& items = iterate(run, container);
      while (const std::optional<JinjaValue> one = items.next())
        if (are_equal(run, *one, item)) return true;
      return false;
    }
  }
}

JinjaValue arithmetic(JinjaRun& run, std::string_view sign, const JinjaValue& left, const JinjaValue& right) {
  if (left.is_number() && right.is_number()) return number_arithmetic(run, sign, left, right);
  if (sign == "%" && left.is_text()) {
    if (left.is_safe_text()) run.fail("lancet does not format text that was marked as safe");
    return run.text(format_percent(run, left.text(), right));
  }
  if (sign == "+" && (left.is_text() || left.is_sequence()) && left.kind() == right.kind())
    return joined(run, left, right);
  if (sign == "*") {
    const auto can_repeat = [](const JinjaValue& value) { return value.is_text() || value.is_sequence(); };
    if (can_repeat(left) && right.is_whole()) return repeated(run, left, right.integer());
    if (can_repeat(right) && left.is_whole()) return repeated(run, right, left.integer());
  }
  if (sign == "|" || (left.is(JinjaKind::kView) && sign == "-")) run.fail("lancet has no sets");
  fail_types(run, sign, left, right);
}

JinjaValue negative(JinjaRun& run, const JinjaValue& value) {
  if (value.is(JinjaKind::kFloat)) return JinjaValue::of(-value.real());
  if (value.is_whole()) return whole_result(run, "-", 0, value.integer());
  if (value.is_undefined()) run.fail_undefined(value);
  run.fail(cat("'-' before ", shown_type(value)));
}

JinjaValue positive(JinjaRun& run, const JinjaValue& value) {
  if (value.is(JinjaKind::kFloat)) return value;
  if (value.is_whole()) return JinjaValue::of(value.integer());
  if (value.is_undefined()) run.fail_undefined(value);
  run.fail(cat("'+' before ", shown_type(value)));
}

std::string escaped_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      case '"':
        escaped += "&#34;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

size_t find_part(JinjaRun& run, std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string::npos;
  if (part.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  const size_t at = found == nullptr ? text.size() : static_cast<size_t>(static_cast<const char*>(found) - text.data());
  run.charge_bytes(at - from);
  return found == nullptr ? std::string::npos : at;
}

}  // namespace lancet
