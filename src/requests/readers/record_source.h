// Reads the records of a file of any format: a JSON list, JSON lines, CSV, or EasyEdit's object of lists.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lancet/requests/request.h"
#include "record_reader.h"

namespace lancet {

struct SourceRecord {
  RecordJson json;
  RecordPlace place;
  std::string problem;  ///< why it cannot be read: "not valid JSON: ..."; empty if it can
};

enum class SourceKind { kRecords, kTable, kLists };

struct SourceRecords {
  std::vector<SourceRecord> records;  ///< the records of the range
  SourceKind kind = SourceKind::kRecords;
  std::vector<std::string> notes = {};  ///< "facts.csv: column 1 has no name ...: left out"
};

/// Reads records. The end of the file's name says how: .json, .jsonl, .csv. Throws: ConfigError if the file is none of
/// these, cannot be read, is empty, or has no record in the range.
SourceRecords read_records(const std::filesystem::path& path, RequestRange range);

/// Returns the range [first, end) of `count` records. Throws: ConfigError if it is empty.
std::pair<size_t, size_t> taken_records(RequestRange range, size_t count, const std::string& source);

/// Returns "r.json: record 3 (line 4): what".
std::string problem_text(const RecordPlace& place, const std::string& what);

}  // namespace lancet
