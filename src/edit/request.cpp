#include "lancet/edit/request.h"

#include <algorithm>
#include <map>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "request_record.h"

namespace lancet {
namespace {

using Json = nlohmann::json;

constexpr size_t kShownProblems = 20;

/// A record of the source that is taken, and where it stands.
struct SourceRecord {
  Json json;
  RecordPlace place;
};

/// What is wrong with `text` as JSON: "line 3, column 5: ...". `text` may be a whole file, so what was read last is
/// cut.
std::string json_problem(const Json::parse_error& error) {
  const std::string_view what = error.what();
  const size_t tag_end = what.find("] ");
  return "not valid JSON: " + excerpt(what.substr(tag_end == std::string_view::npos ? 0 : tag_end + 2), 300);
}

void throw_problems(const std::vector<std::string>& problems) {
  if (problems.empty()) return;
  std::string message = join(std::span(problems).first(std::min(problems.size(), kShownProblems)), "\n");
  if (problems.size() > kShownProblems) message += cat("\n... and ", problems.size() - kShownProblems, " more");
  throw ConfigError(message);
}

/// [first, end) of `size` records. Throws: ConfigError when that is empty.
std::pair<int64_t, int64_t> taken(RequestRange range, int64_t size, const std::string& source) {
  if (range.skip < 0 || range.limit.value_or(1) < 1)
    throw ConfigError(cat(source, ": skip ", range.skip, ", limit ", range.limit.value_or(1),
                          ": expected a skip of at least 0 and a limit of at least 1"));
  if (size == 0) throw ConfigError(cat(source, ": holds no request"));
  if (range.skip >= size) throw ConfigError(cat(source, ": skip ", range.skip, " leaves none of ", size, " records"));
  // Without overflow for a limit of any size.
  return {range.skip, range.skip + std::min(range.limit.value_or(size), size - range.skip)};
}

std::vector<SourceRecord> read_json(const std::string& text, const std::string& source, RequestRange range) {
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw ConfigError(cat(source, ": ", json_problem(error)));
  }
  if (!document.is_array())
    throw ConfigError(cat(source, ": expected a list of records, got ",
                          document.is_object() ? "an object" : "a single value",
                          "; one record per line goes into a .jsonl file"));
  const auto [first, end] = taken(range, static_cast<int64_t>(document.size()), source);
  std::vector<SourceRecord> records;
  for (int64_t i = first; i < end; ++i)
    records.push_back({std::move(document[static_cast<size_t>(i)]), {source, i, ""}});
  return records;
}

std::vector<SourceRecord> read_json_lines(const std::string& text, const std::string& source, RequestRange range,
                                          std::vector<std::string>& problems) {
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
  const auto [first, end] = taken(range, static_cast<int64_t>(lines.size()), source);
  std::vector<SourceRecord> records;
  for (int64_t i = first; i < end; ++i) {
    const Line& line = lines[static_cast<size_t>(i)];
    RecordPlace place{source, i, cat("line ", line.number)};
    try {
      records.push_back({Json::parse(line.text), std::move(place)});
    } catch (const Json::parse_error& error) {
      problems.push_back(cat(source, ": record ", i, " (", place.details, "): ", json_problem(error)));
    }
  }
  return records;
}

std::vector<EditRequest> parse_all(const std::vector<SourceRecord>& records, RecordOptions options,
                                   std::vector<std::string> problems) {
  std::vector<EditRequest> requests;
  std::map<std::string, int64_t> index_of_id;
  for (const SourceRecord& record : records) {
    std::optional<EditRequest> request = parse_record(record.json, record.place, options, problems);
    if (!request) continue;
    const auto [first, is_new] = index_of_id.emplace(request->id, record.place.index);
    if (is_new)
      requests.push_back(std::move(*request));
    else
      problems.push_back(cat(record.place.source, ": record ", record.place.index, ": id: '", request->id,
                             "' stands twice, first in record ", first->second));
  }
  throw_problems(problems);
  return requests;
}

/// Every scalar as text: `target: 1998` in a job means the word.
Json to_json(const ConfigTree& tree) {
  switch (tree.kind) {
    case ConfigTree::Kind::kNull:
      return nullptr;
    case ConfigTree::Kind::kScalar:
      return tree.scalar;
    case ConfigTree::Kind::kList: {
      Json list = Json::array();
      for (const ConfigTree& item : tree.items) list.push_back(to_json(item));
      return list;
    }
    case ConfigTree::Kind::kMap: {
      Json map = Json::object();
      for (const auto& [key, value] : tree.entries) map[key] = to_json(value);
      return map;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<EditRequest> load_requests(const std::filesystem::path& path, RequestRange range, TargetUse targets) {
  const std::string source = path.string();
  const bool is_lines = path.extension() == ".jsonl";
  if (!is_lines && path.extension() != ".json")
    throw ConfigError(
        cat(source, ": expected a file of requests that ends in .json (a list) or .jsonl (one record per line)"));
  const std::string text = read_text_file(path, "request file");
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw ConfigError(cat(source, ": is empty, expected requests"));
  std::vector<std::string> problems;
  const std::vector<SourceRecord> records =
      is_lines ? read_json_lines(text, source, range, problems) : read_json(text, source, range);
  RecordOptions options{.targets = targets};
  if (!records.empty()) options.shape = shape_of(records.front().json);
  return parse_all(records, options, std::move(problems));
}

std::vector<EditRequest> parse_requests(const ConfigTree& list) {
  const std::string source = "requests";
  if (list.kind != ConfigTree::Kind::kList)
    throw ConfigError(source + ": expected a list of {prompt, subject, target}");
  if (list.items.empty())
    throw ConfigError(source + ": the list is empty, expected at least one {prompt, subject, target}");
  std::vector<SourceRecord> records;
  for (const ConfigTree& item : list.items) {
    const std::string details = item.line > 0 ? cat("line ", item.line) : "";
    records.push_back({to_json(item), {source, static_cast<int64_t>(records.size()), details}});
  }
  return parse_all(records, {RecordShape::kFlat, UnknownKeys::kRefuse}, {});
}

std::string to_json_line(const EditRequest& request) {
  nlohmann::ordered_json record{{"id", request.id}};
  std::string prompt = request.prompt.text;
  if (!request.subject.empty()) {
    record["subject"] = request.subject;
    // With its place marked, the prompt may contain the subject a second time.
    const ByteSpan subject = request.prompt.subject;
    prompt.replace(static_cast<size_t>(subject.begin), static_cast<size_t>(subject.end - subject.begin), "{}");
  }
  record["prompt"] = prompt;
  record["target"] = request.target;
  if (request.target_true) record["target_true"] = *request.target_true;
  if (!request.paraphrases.empty()) record["paraphrases"] = request.paraphrases;
  if (!request.neighborhood.empty()) record["neighborhood"] = request.neighborhood;
  return record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace lancet
