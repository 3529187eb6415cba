// Filters for numbers.
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "arguments.h"
#include "filters.h"
#include "lancet/core/strings.h"
#include "number_text.h"

namespace lancet {
namespace {

constexpr double kBeyondWhole = 9.2e18;

JinjaValue whole_of(JinjaRun& run, double real) {
  if (std::abs(real) >= kBeyondWhole) run.fail("int: a whole number beyond 64 bits, in which lancet counts");
  return JinjaValue::of(static_cast<int64_t>(real));
}

JinjaValue int_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments(call.run, call.name, call.given, {"default", "base"});
  const JinjaValue fallback = arguments.has(0) ? *arguments[0] : JinjaValue::of(int64_t{0});
  const JinjaValue& value = call.value;
  if (value.is_undefined()) call.run.fail_undefined(value);
  if (value.is_whole()) return JinjaValue::of(value.integer());
  if (value.is(JinjaKind::kFloat)) {
    if (std::isnan(value.real())) return fallback;
    return whole_of(call.run, value.real());
  }
  if (!value.is_text()) return fallback;
  const int64_t base = arguments.integer(1, 10);
  if (const std::optional<int64_t> whole = read_python_integer(value.text(), static_cast<int>(base)))
    return JinjaValue::of(*whole);
  const std::optional<double> real = read_python_float(value.text());
  if (!real || std::isnan(*real) || std::isinf(*real)) return fallback;
  return whole_of(call.run, *real);
}

JinjaValue float_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments(call.run, call.name, call.given, {"default"});
  if (call.value.is_undefined()) call.run.fail_undefined(call.value);
  if (call.value.is_number()) return JinjaValue::of(call.value.real());
  if (call.value.is_text())
    if (const std::optional<double> real = read_python_float(call.value.text())) return JinjaValue::of(*real);
  return arguments.has(0) ? *arguments[0] : JinjaValue::of(0.0);
}

JinjaValue abs_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments none(call.run, call.name, call.given, {});
  if (!call.value.is_number()) call.run.fail(cat("abs: expected a number, got ", shown_type(call.value)));
  if (call.value.is(JinjaKind::kFloat)) return JinjaValue::of(std::abs(call.value.real()));
  return call.value.integer() < 0 ? negative(call.run, call.value) : positive(call.run, call.value);
}

/// Computes round() of a float: to the nearest decimal, and of two equally near ones to the even one.
double rounded(double real, int64_t digits) {
  if (!std::isfinite(real)) return real;
  if (digits > 22) return real;
  if (digits >= 0) {
    std::array<char, 400> text{};
    std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(digits), real);
    return std::strtod(text.data(), nullptr);
  }
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(real / unit) * unit;
}

JinjaValue round_filter(const JinjaFilterCall& call) {
  const JinjaBoundArguments arguments(call.run, call.name, call.given, {"precision", "method"});
  const std::string method = arguments.has(1) ? arguments.need_text(1) : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    call.run.fail(cat("round: expected the method common, ceil or floor, got ", method));
  if (call.value.is_undefined()) call.run.fail_undefined(call.value);
  if (!call.value.is_number()) call.run.fail(cat("round: expected a number, got ", shown_type(call.value)));
  const int64_t digits = arguments.integer(0, 0);
  if (digits < -300 || digits > 300) call.run.fail("round: more digits than a number has");
  if (method == "common") {
    if (call.value.is(JinjaKind::kFloat)) return JinjaValue::of(rounded(call.value.real(), digits));
    if (digits >= 0) return JinjaValue::of(call.value.integer());
    call.run.fail("round: lancet does not round whole numbers to tens");
  }
  const JinjaValue scale = arithmetic(call.run, "**", JinjaValue::of(int64_t{10}), JinjaValue::of(digits));
  const double scaled = arithmetic(call.run, "*", call.value, scale).real();
  if (!std::isfinite(scaled)) call.run.fail("round: a number that is not finite");
  const JinjaValue whole = whole_of(call.run, method == "ceil" ? std::ceil(scaled) : std::floor(scaled));
  return arithmetic(call.run, "/", whole, scale);
}

}  // namespace

const std::vector<JinjaFilterRow>& number_filters() {
  static const std::vector<JinjaFilterRow> kRows{
      {"int", int_filter}, {"float", float_filter}, {"abs", abs_filter}, {"round", round_filter}};
  return kRows;
}

}  // namespace lancet
