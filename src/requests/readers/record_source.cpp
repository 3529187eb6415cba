#include "record_source.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easyedit_lists.h"
#include "lancet/core/error.h"
#include "lancet/core/foreign_text.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "record_reader.h"
#include "table_source.h"

namespace lancet {
namespace {

// JSON of data sets as Python writes it: NaN is read as null. Duplicate keys are an error, because one of the two
// values would be lost without notice.

struct RepeatedKey {
  int64_t element = 0;  ///< index in the list, if the text is a list
  std::string key;
};

struct JsonText {
  RecordJson value;
  std::vector<RepeatedKey> repeated;
};

/// The depth of a list of records, a record, its sections, their probes, answers and aliases. No data set is half as
/// deep.
constexpr int kDeepest = 32;

/// Returns an empty text if there is nothing to replace.
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

/// Throws: ConfigError "not valid JSON: ...", also if it is nested deeper than any record.
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

/// Whether the text is JSON lines: its first line is an object, and more lines follow.
bool holds_lines(std::string_view text) {
  text.remove_prefix(text.find_first_not_of(kAsciiWhiteSpace));
  const size_t end = text.find_first_of("\r\n");
  if (end == std::string_view::npos || text.find_first_not_of(kAsciiWhiteSpace, end) == std::string_view::npos)
    return false;
  try {
    return parse_json_text(text.substr(0, end)).value.is_object();
  } catch (const ConfigError&) {
    return false;
  }
}

JsonText parse_file(const std::string& text, const std::string& source) {
  try {
    return parse_json_text(text);
  } catch (const ConfigError& error) {
    if (holds_lines(text))
      throw ConfigError(cat(source, ": holds a record per line: the name of such a file ends in .jsonl"));
    throw ConfigError(cat(source, ": ", error.what()));
  }
}

/// Describes a document that is not a list of records.
std::string no_list_text(const RecordJson& document) {
  if (!document.is_object()) return "a single value; one record per line goes into a .jsonl file";
  for (const auto& [key, value] : document.items())
    if (value.is_array() && !value.empty() && value.front().is_object())
      return cat("an object, whose key '", excerpt(key, 60), "' has a list of objects: write that list alone into a ",
                 "file");
  return "an object; one record per line goes into a .jsonl file";
}

SourceRecords read_json(const std::string& text, const std::string& source, RequestRange range) {
  SourceRecords out;
  JsonText document = parse_file(text, source);
  if (is_easyedit_lists(document.value)) {
    if (!document.repeated.empty())
      throw ConfigError(cat(source, ": ", repeated_key_text(document.repeated.front().key)));
    out.kind = SourceKind::kLists;
    document.value = to_records(document.value, source);
  }
  if (!document.value.is_array())
    throw ConfigError(cat(source, ": expected a list of records, got ", no_list_text(document.value)));
  const auto [first, end] = taken_records(range, document.value.size(), source);
  for (size_t i = first; i < end; ++i)
    out.records.push_back({std::move(document.value[i]), {source, static_cast<int64_t>(i), ""}, ""});
  for (const RepeatedKey& repeated : document.repeated) {
    const auto element = static_cast<size_t>(repeated.element);
    if (element >= first && element < end) out.records[element - first].problem = repeated_key_text(repeated.key);
  }
  return out;
}

/// Checks for UTF-8, because the JSON reader and writer refuse other bytes. Throws: ConfigError with the line.
void check_utf8(std::string_view text, const std::string& source) {
  if (const std::optional<BadByte> bad = find_bad_byte(text))
    throw ConfigError(cat(source, ": line ", bad->line, ": ", bad->text()));
}

struct Line {
  std::string_view text;
  int64_t number;
};

/// Returns the lines that are not blank. They end with LF, CRLF or CR, which cannot be inside a value of JSON.
std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    ++number;
    if (!is_blank(line)) lines.push_back({line, number});
    begin = end + (text.substr(end).starts_with("\r\n") ? 2 : 1);
  }
  return lines;
}

SourceRecords read_json_lines(const std::string& text, const std::string& source, RequestRange range) {
  if (text[text.find_first_not_of(kAsciiWhiteSpace)] == '[')
    throw ConfigError(cat(source, ": is one list of records: the name of such a file ends in .json"));
  const std::vector<Line> lines = lines_of(text);
  const auto [first, end] = taken_records(range, lines.size(), source);
  SourceRecords out;
  for (size_t i = first; i < end; ++i) {
    SourceRecord record{{}, {source, static_cast<int64_t>(i), cat("line ", lines[i].number)}, ""};
    try {
      JsonText line = parse_json_text(lines[i].text);
      record.json = std::move(line.value);
      if (!line.repeated.empty()) record.problem = repeated_key_text(line.repeated.front().key);
    } catch (const ConfigError& error) {
      const std::optional<BadByte> bad = find_bad_byte(lines[i].text);
      record.problem = bad ? bad->text() : error.what();
    }
    out.records.push_back(std::move(record));
  }
  return out;
}

}  // namespace

std::pair<size_t, size_t> taken_records(RequestRange range, size_t count, const std::string& source) {
  if (range.skip < 0 || range.limit.value_or(1) < 1)
    throw ConfigError(cat(source, ": skip ", range.skip, ", limit ", range.limit.value_or(1),
                          ": expected a skip of at least 0 and a limit of at least 1"));
  const auto size = static_cast<int64_t>(count);
  if (size == 0) throw ConfigError(cat(source, ": holds no request"));
  if (range.skip >= size) throw ConfigError(cat(source, ": skip ", range.skip, " leaves none of ", size, " records"));
  // computed so that no limit overflows
  const int64_t end = range.skip + std::min(range.limit.value_or(size), size - range.skip);
  return {static_cast<size_t>(range.skip), static_cast<size_t>(end)};
}

SourceRecords read_records(const std::filesystem::path& path, RequestRange range) {
  const std::string source = path.string();
  const std::filesystem::path extension = path.extension();
  if (extension != ".jsonl" && extension != ".json" && extension != ".csv")
    throw ConfigError(cat(source, ": expected a file of requests that ends in .json (a list), .jsonl (one record per ",
                          "line) or .csv (with a header line)"));
  const std::string text = read_text_file(path, "request file");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw ConfigError(cat(source, ": is empty, expected requests"));
  if (const std::optional<std::string> foreign = foreign_file(text)) throw ConfigError(cat(source, ": ", *foreign));
  if (extension != ".jsonl") check_utf8(text, source);  // there each line is a record, and reports the problem itself
  if (extension == ".csv") return read_table(text, source, range);
  return extension == ".jsonl" ? read_json_lines(text, source, range) : read_json(text, source, range);
}

std::string problem_text(const RecordPlace& place, const std::string& what) {
  return cat(place.text(), place.details.empty() ? "" : cat(" (", place.details, ")"), ": ", what);
}

}  // namespace lancet
