// The records of a file, whatever their format: a JSON list, JSON lines, CSV, or EasyEdit's object of lists.
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
  std::string problem;  ///< why it cannot be read: "not valid JSON: ..."; empty: it can
};

enum class SourceKind { kRecords, kTable, kLists };

struct SourceRecords {
  std::vector<SourceRecord> records;  ///< those of the range
  SourceKind kind = SourceKind::kRecords;
  std::vector<std::string> notes = {};  ///< "facts.csv: column 1 has no name ...: left out"
};

/// Reads records by the end of the name: .json, .jsonl, .csv. Throws: ConfigError for a file that is none of them,
/// cannot be read, is empty, or has no record in the range.
SourceRecords read_records(const std::filesystem::path& path, RequestRange range);

/// [first, end) of `count` records. Throws: ConfigError when that is empty.
std::pair<size_t, size_t> taken_records(RequestRange range, size_t count, const std::string& source);

/// "r.json: record 3 (line 4): what".
std::string problem_text(const RecordPlace& place, const std::string& what);

}  // namespace lancet
