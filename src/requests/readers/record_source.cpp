#include "record_source.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csv.h"
#include "easyedit_lists.h"
#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "record_reader.h"

namespace lancet {
namespace {

// JSON of data sets as Python writes it: NaN reads as null. Keys that stand twice are told, since one of the two values
// would be lost without a word.

struct RepeatedKey {
  int64_t element = 0;  ///< index in the list that the text is
  std::string key;
};

struct JsonText {
  RecordJson value;
  std::vector<RepeatedKey> repeated;
};

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

/// Throws: ConfigError "not valid JSON: ...", also for nesting deeper than any record's.
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

/// [first, end) of `size` records. Throws: ConfigError when that is empty.
std::pair<size_t, size_t> taken(RequestRange range, size_t count, const std::string& source) {
  if (range.skip < 0 || range.limit.value_or(1) < 1)
    throw ConfigError(cat(source, ": skip ", range.skip, ", limit ", range.limit.value_or(1),
                          ": expected a skip of at least 0 and a limit of at least 1"));
  const auto size = static_cast<int64_t>(count);
  if (size == 0) throw ConfigError(cat(source, ": holds no request"));
  if (range.skip >= size) throw ConfigError(cat(source, ": skip ", range.skip, " leaves none of ", size, " records"));
  // Without overflow for a limit of any size.
  const int64_t end = range.skip + std::min(range.limit.value_or(size), size - range.skip);
  return {static_cast<size_t>(range.skip), static_cast<size_t>(end)};
}

JsonText parse_file(const std::string& text, const std::string& source) {
  try {
    return parse_json_text(text);
  } catch (const ConfigError& error) {
    throw ConfigError(cat(source, ": ", error.what()));
  }
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
    throw ConfigError(cat(source, ": expected a list of records, got ",
                          document.value.is_object() ? "an object" : "a single value",
                          "; one record per line goes into a .jsonl file"));
  const auto [first, end] = taken(range, document.value.size(), source);
  for (size_t i = first; i < end; ++i)
    out.records.push_back({std::move(document.value[i]), {source, static_cast<int64_t>(i), ""}, ""});
  for (const RepeatedKey& repeated : document.repeated) {
    const auto element = static_cast<size_t>(repeated.element);
    if (element >= first && element < end) out.records[element - first].problem = repeated_key_text(repeated.key);
  }
  return out;
}

/// Place of the first byte that is no UTF-8.
struct BadByte {
  int64_t line = 1;
  unsigned value = 0;

  std::string text() const { return cat("the byte ", value, " is no UTF-8: save the file as UTF-8"); }
};

std::optional<BadByte> find_bad_byte(std::string_view text) {
  BadByte found;
  for (size_t at = 0; at < text.size();) {
    found.value = static_cast<unsigned char>(text[at]);
    const size_t bytes = decode_utf8_at(text, at).bytes;
    if (bytes == 0) return found;
    found.line += text[at] == '\n' ? 1 : 0;
    at += bytes;
  }
  return std::nullopt;
}

/// Invalid UTF-8 must not come in: JSON's reader refuses it, and so does its writer. Throws: ConfigError with the line.
void check_utf8(std::string_view text, const std::string& source) {
  if (const std::optional<BadByte> bad = find_bad_byte(text))
    throw ConfigError(cat(source, ": line ", bad->line, ": ", bad->text()));
}

SourceRecords read_json_lines(const std::string& text, const std::string& source, RequestRange range) {
  struct Line {
    std::string_view text;
    int64_t number;
  };
  std::vector<Line> lines;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) lines.push_back({line, number});
    begin = end + 1;
  }
  const auto [first, end] = taken(range, lines.size(), source);
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

/// A table whose columns something else than a comma divides has one.
void check_divided(const CsvRow& header, const std::string& source) {
  if (header.fields.size() != 1) return;
  for (const auto& [mark, name] : {std::pair{';', "semicolons"}, std::pair{'\t', "tabs"}})
    if (header.fields.front().find(mark) != std::string::npos)
      throw ConfigError(cat(source, ": line ", header.line, ": its columns are divided by ", name,
                            ": expected commas; save it as CSV with commas"));
}

/// A column that stands several times is a list; an empty field is absent.
RecordJson to_record(const std::vector<std::string>& names, const std::vector<std::string>& fields) {
  RecordJson record = RecordJson::object();
  for (size_t i = 0; i < names.size(); ++i) {
    if (fields[i].empty()) continue;
    if (std::count(names.begin(), names.end(), names[i]) > 1)
      record[names[i]].push_back(fields[i]);
    else
      record[names[i]] = fields[i];
  }
  return record;
}

SourceRecords read_csv(const std::string& text, const std::string& source, RequestRange range) {
  const std::vector<CsvRow> rows = parse_csv(text);
  if (rows.empty()) throw ConfigError(cat(source, ": is empty, expected a header line"));
  const CsvRow& header = rows.front();
  check_divided(header, source);
  if (!header.problem.empty()) throw ConfigError(cat(source, ": line ", header.line, ": ", header.problem));
  const auto [first, end] = taken(range, rows.size() - 1, source);
  SourceRecords out;
  out.kind = SourceKind::kTable;
  for (size_t i = first; i < end; ++i) {
    const CsvRow& row = rows[i + 1];
    SourceRecord record{{}, {source, static_cast<int64_t>(i), cat("line ", row.line)}, row.problem};
    if (record.problem.empty() && row.fields.size() != header.fields.size())
      record.problem = cat("expected ", header.fields.size(), " fields, as the header line has, got ",
                           row.fields.size(), "; a field with a comma stands in quotes");
    if (record.problem.empty()) record.json = to_record(header.fields, row.fields);
    out.records.push_back(std::move(record));
  }
  return out;
}

}  // namespace

SourceRecords read_records(const std::filesystem::path& path, RequestRange range) {
  const std::string source = path.string();
  const std::filesystem::path extension = path.extension();
  if (extension != ".jsonl" && extension != ".json" && extension != ".csv")
    throw ConfigError(cat(source, ": expected a file of requests that ends in .json (a list), .jsonl (one record per ",
                          "line) or .csv (with a header line)"));
  const std::string text = read_text_file(path, "request file");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw ConfigError(cat(source, ": is empty, expected requests"));
  if (extension != ".jsonl") check_utf8(text, source);  // there a line is a record, and says it itself
  if (extension == ".csv") return read_csv(text, source, range);
  return extension == ".jsonl" ? read_json_lines(text, source, range) : read_json(text, source, range);
}

std::string problem_text(const RecordPlace& place, const std::string& what) {
  return cat(place.text(), place.details.empty() ? "" : cat(" (", place.details, ")"), ": ", what);
}

}  // namespace lancet
