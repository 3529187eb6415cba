#include "json_text.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

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

/// "parse error at line 3, column 5: ...". `error` may hold the whole text, so what was read last is cut.
std::string problem_of(const RecordJson::exception& error) {
  const std::string_view what = error.what();
  const size_t tag_end = what.find("] ");
  return "not valid JSON: " + excerpt(what.substr(tag_end == std::string_view::npos ? 0 : tag_end + 2), 300);
}

/// The parser's callback: counts the elements of the outermost list and remembers the keys of open objects.
class KeyWatch {
 public:
  explicit KeyWatch(std::vector<RepeatedKey>& repeated) : repeated_(repeated) {}

  void see(int depth, RecordJson::parse_event_t event, const RecordJson& parsed) {
    using Event = RecordJson::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kDeepest)
      throw ConfigError(cat("nested deeper than ", kDeepest, " levels"));
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::key) see_key(parsed.get_ref<const std::string&>());
    if (event == Event::object_end) open_.pop_back();
    if (depth == 1 && (event == Event::object_end || event == Event::array_end || event == Event::value)) ++element_;
  }

 private:
  void see_key(const std::string& key) {
    std::vector<std::string>& keys = open_.back();
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      keys.push_back(key);
    else
      repeated_.push_back({element_, key});
  }

  std::vector<RepeatedKey>& repeated_;
  std::vector<std::vector<std::string>> open_;
  int64_t element_ = 0;
};

}  // namespace

JsonText parse_json_text(std::string_view text) {
  JsonText out;
  KeyWatch watch(out.repeated);
  const auto callback = [&](int depth, RecordJson::parse_event_t event, RecordJson& parsed) {
    watch.see(depth, event, parsed);
    return true;
  };
  const std::string replaced = with_null_for_nan(text);
  const std::string_view clean = replaced.empty() ? text : replaced;
  try {
    out.value = RecordJson::parse(clean.begin(), clean.end(), callback);
  } catch (const RecordJson::exception& error) {
    throw ConfigError(problem_of(error));
  }
  return out;
}

std::string repeated_key_text(const RepeatedKey& repeated) {
  return cat("the key '", excerpt(repeated.key, 60), "' stands twice in one object");
}

}  // namespace lancet
