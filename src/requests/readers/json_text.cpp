#include "json_text.h"

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"

namespace lancet {
namespace {

/// A list of records, a record, its sections, their probes, answers, other names: no data set goes half as deep.
constexpr int kDeepest = 32;

/// Empty where there is none to replace.
std::string with_null_for_nan(std::string_view text) {
  constexpr std::string_view kNaN = "NaN";
  std::string out;
  size_t copied = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && text.substr(i, kNaN.size()) == kNaN) {
      out.append(text.substr(copied, i - copied)).append("null");
      copied = i + kNaN.size();
    }
  }
  return copied == 0 ? std::string() : out.append(text.substr(copied));
}

}  // namespace

JsonText parse_json_text(std::string_view text) {
  JsonText out;
  const std::string replaced = with_null_for_nan(text);
  const std::string_view clean = replaced.empty() ? text : replaced;
  try {
    out.value = parse_ordered_json(clean, kDeepest, [&](const std::string& key, int64_t element) {
      out.repeated.push_back({element, key});
    });
  } catch (const JsonProblem& problem) {
    throw ConfigError(problem.what());
  }
  return out;
}

}  // namespace lancet
