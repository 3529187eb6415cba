// Templates: what they make, what is wrong with one, and that none takes more than it may. tests/parity compares with
// jinja2 itself; what stands here runs under AddressSanitizer and UBSan.
#include "lancet/jinja/jinja_template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

JinjaData texts(std::initializer_list<std::pair<const char*, const char*>> entries) {
  JinjaDataMap map;
  for (const auto& [key, value] : entries) map.emplace_back(key, JinjaData{std::string(value)});
  return {std::move(map)};
}

JinjaDataMap variables() {
  return {{"messages",
           {JinjaDataList{texts({{"role", "system"}, {"content", " Be brief. "}}),
                          texts({{"role", "user"}, {"content", "Zürich?"}})}}},
          {"bos_token", {std::string("<s>")}},
          {"n", {int64_t{5}}},
          {"x", {2.5}},
          {"nothing", {}}};
}

std::tm some_day() {
  std::tm day{};
  day.tm_year = 125;
  day.tm_mon = 5;
  day.tm_mday = 15;
  return day;
}

std::string rendered(const std::string& source, const JinjaLimits& limits = {}) {
  return JinjaTemplate(source).render(variables(), some_day(), limits);
}

JinjaError error_in(const std::string& source, const JinjaLimits& limits = {}) {
  try {
    const std::string text = rendered(source, limits);
    ADD_FAILURE() << source << " gives " << text;
  } catch (const JinjaError& error) {
    return error;
  }
  return {JinjaError::Cause::kTemplate, "no error", 0};
}

TEST(JinjaTemplate, GivesWhatPythonGives) {
  for (const auto& [source, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 1 / 3 }} {{ 2 ** 10 }}", "3 -4 2 0.3333333333333333 1024"},
           {"{{ [1, 2.0, 'a', none, true, (1,), {}] }}", "[1, 2.0, 'a', None, True, (1,), {}]"},
           {"{{ \"it's\"|list|length }}{{ ['it\\'s'] }}", "4[\"it's\"]"},
           {"{{ messages[-1].content[:2] }}{{ 'abc'[::-1] }}{{ messages[1:]|length }}", "Zücba1"},
           {"{{ messages|map(attribute='role')|join(',') }}", "system,user"},
           {"{{ messages[0]|tojson }}", R"({"role": "system", "content": " Be brief. "})"},
           {"{{ missing }}|{{ missing is defined }}|{{ nothing.foo is defined }}", "|False|False"},
           {"{% set ns = namespace(i=0) %}{% for m in messages %}{% set ns.i = ns.i + loop.index %}{% endfor %}{{ ns.i "
            "}}",
            "3"},
           {"{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(b=3, a=0) }}", "1203"},
           {"{% for i in range(5) if i % 2 %}{{ i }}{{ ',' if not loop.last }}{% endfor %}", "1,3"},
           {"a\n  {% if n %}\n  b\n  {%- endif %}\nc\n", "a\n  bc"},
           {"{{ strftime_now('%d %B %Y') }}", "15 June 2025"},
           {"{{ '%s-%05.1f' % ('a', x) }}{{ '{:>4}|{:,}'.format('b', 12345) }}", "a-002.5   b|12,345"},
           {"{{ 'ß ΑΣ'.upper() }}{{ 'ΑΣ'.lower() }}", "SS ΑΣας"},
           {"{% generation %}x{% endgeneration %}{% filter upper %}y{% endfilter %}", "xY"}})
    EXPECT_EQ(rendered(source), text) << source;
}

TEST(JinjaTemplate, NamesWhatIsWrongAndItsLine) {
  struct Case {
    const char* source;
    int64_t line;
    const char* part;
  };
  for (const Case& one :
       {Case{"a\n{{ x|nofilter }}", 2, "nofilter"}, Case{"{{ x is notest }}", 1, "notest"},
        Case{"\n\n{{ missing.role }}", 3, "'missing' is undefined"}, Case{"{% if n %}", 1, "endif"},
        Case{"{% block a %}{% endblock %}", 1, "block"}, Case{"{{ x|urlize }}", 1, "lancet does not have"},
        Case{"{{ 1 + 'a' }}", 1, "'+' between int object and str object"}, Case{"{{ n( }}", 1, "expected"},
        Case{"{{ 9223372036854775807 + 1 }}", 1, "64 bits"}, Case{"{% break %}", 1, "outside of a loop"},
        Case{"{{ [].append(1) }}", 1, "sandbox"}, Case{"{{ cycler(1) }}", 1, "cycler"},
        Case{"{{ messages|map('trim') }}", 1, "|list"}, Case{"{{ '\\ud800' }}", 1, "surrogate"}}) {
    const JinjaError error = error_in(one.source);
    EXPECT_EQ(error.line(), one.line) << one.source;
    EXPECT_NE(std::string(error.what()).find(one.part), std::string::npos) << error.what();
    EXPECT_EQ(error.cause(), JinjaError::Cause::kTemplate) << error.what();
  }
}

TEST(JinjaTemplate, TellsWhatTheTemplateRaises) {
  const JinjaError error = error_in("{% if n == 5 %}\n{{ raise_exception('Roles ' ~ n) }}{% endif %}");
  EXPECT_EQ(error.cause(), JinjaError::Cause::kRaised);
  EXPECT_EQ(error.reason(), "Roles 5");
  EXPECT_EQ(error.line(), 2);
}

/// Of what would take all memory, all time or all of the stack.
TEST(JinjaTemplate, EndsWhatTakesTooMuch) {
  const auto begun = std::chrono::steady_clock::now();
  std::string deep_expression, deep_tags, chain = "1";
  for (int i = 0; i < 5000; ++i) {
    deep_expression += "(";
    deep_tags += "{% if n %}";
    chain += "+1";
  }
  for (const std::string& source :
       {std::string("{{ range(10**9)|list }}"),
        std::string("{{ 'a' * 10**12 }}"),
        std::string("{{ [0] * 10**12 }}"),
        std::string("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
        std::string(
            "{% set ns = namespace(a=[]) %}{% for i in range(99999) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a }}"),
        std::string("{% set ns = namespace(a='a') %}{% for i in range(99) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}"),
        std::string("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
        std::string("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}"),
        std::string("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}"),
        std::string("{{ '%999999999d' % 1 }}"),
        std::string("{{ 'a'.ljust(10**11) }}"),
        std::string("{{ ('a' * 999999).replace('', 'b' * 99999) }}"),
        std::string("{{ 'a'|center(10**11) }}"),
        std::string("{{ [1]|batch(10**11, 0)|list }}"),
        std::string("{{ [1]|tojson(indent=10**11) }}"),
        "{{ " + deep_expression,
        deep_tags,
        "{{ " + chain + " }}",
        std::string("{% set a = 'a' * 10**6 %}{% for i in range(99999) %}{{ 'b' in a }}{% endfor %}"),
        std::string("{{ 10 ** 10 ** 10 }}"),
        std::string("{{ 'abc'|indent(10**11) }}"),
        std::string("{{ range(99999)|map('string')|map('length')|sum }}{% for i in range(99999) %}{{ range(99999)|sum "
                    "}}{% endfor %}")})
    EXPECT_NE(error_in(source).cause(), JinjaError::Cause::kRaised) << source.substr(0, 60);
  EXPECT_THROW(JinjaTemplate(std::string(2 << 20, 'a')), JinjaError);
  const auto took = std::chrono::steady_clock::now() - begun;
  EXPECT_LT(std::chrono::duration_cast<std::chrono::seconds>(took).count(),
            120);  // without optimisation, on a busy machine
  EXPECT_EQ(error_in("{% for i in range(100) %}{% endfor %}", {.steps = 50}).cause(), JinjaError::Cause::kLimit);
  EXPECT_EQ(error_in("{{ 'a' * 5000 }}", {.memory_bytes = 4000}).cause(), JinjaError::Cause::kLimit);
}

/// Pieces of templates in any order: an answer or a JinjaError, and nothing that the sanitizers see.
TEST(JinjaTemplate, HoldsAgainstAnyText) {
  constexpr const char* kPieces[] = {
      "{{",        "}}",        "{%",     "%}",      "{#",    "#}",    "-",      " if ",   " for ",    " in ",
      "x",         "n",         "'a'",    "\"",      "'",     "(",     ")",      "[",      "]",        "{",
      "}",         "|",         ".",      ",",       ":",     "=",     "==",     "~",      "*",        "**",
      "%",         "/",         " else ", "\\",      "1",     "2.5",   "endif",  "endfor", "set ",     "macro f(",
      "endmacro",  "loop",      " is ",   "not ",    "trim",  "map",   "items",  "raw",    "messages", "\n",
      "é",         "\xff",      " and ",  "0x1",     "join",  "range", "tojson", "format", "split",    "endset",
      "namespace", "recursive", "call ",  "filter ", "with ", "break"};
  std::mt19937 random(7);
  size_t n_texts = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string source = i % 2 == 0 ? "{{ " : "{% ";
    for (size_t k = random() % 12; k > 0; --k) source += kPieces[random() % std::size(kPieces)];
    source += i % 2 == 0 ? " }}" : " %}";
    try {
      n_texts += rendered(source, {.steps = 20'000, .memory_bytes = 1 << 20}).empty() ? 0 : 1;
    } catch (const JinjaError&) {
    }
  }
  EXPECT_GT(n_texts, 20u);
}

}  // namespace
}  // namespace lancet
