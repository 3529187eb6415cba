#include "lancet/requests/request.h"

#include <algorithm>
#include <map>

#include "formats.h"
#include "key_slips.h"
#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "record_source.h"

namespace lancet {
namespace {

constexpr size_t kShownProblems = 20;

/// What happens to unknown keys. In the user's own records each is a problem. Files of other tools have keys that mean
/// nothing here, but a misspelt key is a problem in them, too.
enum class UnknownKeys { kRefuseMisspelt, kRefuse };

/// Keys by which formats are recognised.
const std::vector<std::string> kMarkKeys{"prompt",  "target",       "target_new", "requested_rewrite",
                                         "answers", "unrel_prompt", "concept",    "labels",
                                         "update",  "attribute",    "locality"};

/// Says what is probably wrong with a record of an unknown format. `keys`: of a table they are its columns.
std::string unknown_format_text(const std::vector<std::string>& keys, SourceKind kind) {
  const bool is_table = kind == SourceKind::kTable;
  const std::string has = excerpt(join(keys), 200);
  if (is_table) return cat("its header line has ", has, ": expected columns with the names prompt, subject and target");
  std::string slips;
  for (const std::string& key : keys)
    if (const std::string meant = meant_key(key, kMarkKeys); !meant.empty())
      slips += cat("; ", key, ": did you mean ", meant, "?");
  return cat("is of no known format: it has ", has, slips.empty() ? "." : slips,
             " A record of your own has prompt, subject and target; docs/job-file.md has the data sets that are read ",
             "as they are: ", join(request_formats()));
}

/// Returns the only format whose keys the record has; null if there is none. Throws: ConfigError that names the
/// candidates if there are several.
const FormatRow* format_of(const SourceRecord& record) {
  std::vector<std::string> names;
  const FormatRow* found = nullptr;
  for (const FormatRow& row : format_table()) {
    if (!has_marks(record.json, row.marks)) continue;
    found = &row;
    names.emplace_back(row.name);
  }
  if (names.size() > 1)
    throw ConfigError(problem_text(record.place, cat("may be of several formats: ", join(names),
                                                     "; requests.format names the one that is meant")));
  return found;
}

/// Finds the format from the first record that has the keys of a format.
const FormatRow& found_format(const SourceRecords& source) {
  if (source.kind == SourceKind::kLists) return kListsFormat;
  const SourceRecord* unknown = nullptr;
  for (const SourceRecord& record : source.records) {
    if (!record.json.is_object()) continue;
    if (const FormatRow* row = format_of(record)) return *row;
    if (unknown == nullptr && !record.json.contains("prompt")) unknown = &record;
  }
  // Records with a prompt that have no format's answer are taken as the user's own: each then says what it lacks.
  if (unknown == nullptr) return kFlatFormat;
  std::vector<std::string> keys;
  for (const auto& [key, value] : unknown->json.items()) keys.push_back(key);
  const std::string what = unknown_format_text(keys, source.kind);
  throw ConfigError(source.kind == SourceKind::kTable ? cat(unknown->place.source, ": ", what)
                                                      : problem_text(unknown->place, what));
}

const FormatRow& chosen_format(const SourceRecords& source, const RequestFileOptions& options,
                               const std::string& file) {
  if (options.format == kAutoFormat) return found_format(source);
  const FormatRow* row = find_format(options.format);
  if (row == nullptr)
    throw ConfigError(
        cat(file, ": requests.format: '", options.format, "': expected auto or one of ", join(request_formats())));
  if ((row->name == kListsFormat.name) != (source.kind == SourceKind::kLists))
    throw ConfigError(
        cat(file, ": requests.format: ", row->name, ": the file is ",
            source.kind == SourceKind::kLists ? "one object of lists: expected " : "a list of records, not ",
            kListsFormat.name));
  return *row;
}

/// Reads records one by one. A bad record adds its problems and no request.
class RequestCollector {
 public:
  RequestCollector(const FormatRow& format, UnknownKeys unknown_keys, TargetNeed target = TargetNeed::kRequired)
      : format_(format), unknown_keys_(unknown_keys), target_(target) {}

  void read(const SourceRecord& record) {
    const size_t before = problems.size();
    std::vector<EditRequest> read = parse(record);
    if (problems.size() == before) take_ids(record, read);
    if (problems.size() > before) {
      ++n_bad;
      return;
    }
    for (EditRequest& request : read) requests.push_back(std::move(request));
  }

  std::vector<EditRequest> requests;
  std::vector<std::string> problems;
  int64_t n_bad = 0;

 private:
  std::vector<EditRequest> parse(const SourceRecord& record) {
    if (!record.problem.empty()) {
      problems.push_back(problem_text(record.place, record.problem));
      return {};
    }
    RecordReader reader(record.json, record.place, problems, target_);
    if (!record.json.is_object()) {
      problems.push_back(cat(reader.where(), ": expected an object, got ", shown(record.json)));
      return {};
    }
    const bool refuses_all = format_.name == kFlatFormat.name && unknown_keys_ == UnknownKeys::kRefuse;
    if (refuses_all) refuse_unknown_keys(reader);
    std::vector<EditRequest> requests_of = format_.parse(reader);
    reader.refuse_slips(refuses_all ? SlipsIn::kInnerObjects : SlipsIn::kAllObjects);
    // if subject or prompt are wrong, problems of paraphrases only follow from that
    if (reader.is_good())
      for (EditRequest& request : requests_of) reader.fill_others(request);
    return requests_of;
  }

  void take_ids(const SourceRecord& record, const std::vector<EditRequest>& read) {
    const size_t before = problems.size();
    for (const EditRequest& request : read)
      if (const auto known = index_of_id_.find(request.id); known != index_of_id_.end())
        problems.push_back(
            cat(record.place.text(), ": id: '", request.id, "' stands twice, first in record ", known->second));
    if (problems.size() > before) return;
    for (const EditRequest& request : read) index_of_id_.emplace(request.id, record.place.index);
  }

  const FormatRow& format_;
  UnknownKeys unknown_keys_;
  TargetNeed target_;
  std::map<std::string, int64_t> index_of_id_;
};

constexpr const char* kNoRecords = "the list is empty, expected at least one {prompt, subject, target}";

void throw_problems(const std::vector<std::string>& problems) {
  if (!problems.empty()) throw ConfigError(first_problems(problems));
}

/// Returns every scalar as text: `target: 1998` in a job means the word.
RecordJson record_json(const ConfigTree& tree) {
  switch (tree.kind) {
    case ConfigTree::Kind::kNull:
      return nullptr;
    case ConfigTree::Kind::kScalar:
      return tree.scalar;
    case ConfigTree::Kind::kList: {
      RecordJson list = RecordJson::array();
      for (const ConfigTree& item : tree.items) list.push_back(record_json(item));
      return list;
    }
    case ConfigTree::Kind::kMap: {
      RecordJson map = RecordJson::object();
      for (const auto& [key, value] : tree.entries) map[key] = record_json(value);
      return map;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> request_formats() {
  std::vector<std::string> names;
  for (const FormatRow& row : format_table()) names.emplace_back(row.name);
  return names;
}

std::string first_problems(std::span<const std::string> problems) {
  std::string text = join(problems.first(std::min(problems.size(), kShownProblems)), "\n");
  if (problems.size() > kShownProblems) text += cat("\n... and ", problems.size() - kShownProblems, " more");
  return text;
}

RequestFile load_request_file(const std::filesystem::path& path, const RequestFileOptions& options) {
  const SourceRecords source = read_records(path, options.range);
  const FormatRow& format = chosen_format(source, options, path.string());
  RequestCollector reader(
      format, source.kind == SourceKind::kTable ? UnknownKeys::kRefuse : UnknownKeys::kRefuseMisspelt, options.target);
  for (const SourceRecord& record : source.records) reader.read(record);
  if (options.on_bad_record == OnBadRecord::kError || reader.requests.empty()) throw_problems(reader.problems);
  for (const std::string& note : source.notes) log_line(note);
  return {std::move(reader.requests), std::string(format.name), {reader.n_bad, std::move(reader.problems)}};
}

std::vector<EditRequest> parse_requests(const ConfigTree& list, TargetNeed target) {
  if (list.kind != ConfigTree::Kind::kList) throw ConfigError("expected a list of {prompt, subject, target}");
  if (list.items.empty()) throw ConfigError(kNoRecords);
  RequestCollector reader(kFlatFormat, UnknownKeys::kRefuse, target);
  for (size_t i = 0; i < list.items.size(); ++i) {
    const ConfigTree& item = list.items[i];
    const std::string details = item.line > 0 ? cat("line ", item.line) : "";
    reader.read({record_json(item), {"", static_cast<int64_t>(i), details}, ""});
  }
  throw_problems(reader.problems);
  return std::move(reader.requests);
}

std::vector<EditRequest> parse_facts(std::span<const Fact> facts, std::span<const std::string> ids) {
  if (facts.empty()) throw ConfigError(kNoRecords);
  RequestCollector reader(kFlatFormat, UnknownKeys::kRefuse);
  for (size_t i = 0; i < facts.size(); ++i) {
    const Fact& fact = facts[i];
    RecordJson record{{"id", ids[i]}, {"prompt", fact.prompt}, {"target", fact.target}};
    if (!fact.subject.empty()) record["subject"] = fact.subject;
    reader.read({std::move(record), {"", static_cast<int64_t>(i), ""}, ""});
  }
  throw_problems(reader.problems);
  return std::move(reader.requests);
}

EditRequest parse_json_line(std::string_view line) {
  RequestCollector reader(kFlatFormat, UnknownKeys::kRefuse);
  try {
    reader.read({parse_ordered_json(line), {"", 0, ""}, ""});
  } catch (const JsonProblem& problem) {
    throw ConfigError(problem.what());
  }
  throw_problems(reader.problems);
  return std::move(reader.requests.front());
}

}  // namespace lancet
