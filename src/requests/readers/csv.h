// Comma-separated values as RFC 4180 has them, with a header line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

struct CsvRow {
  std::vector<std::string> fields;
  int64_t line = 1;     ///< line where it begins: a field in quotes may hold line breaks
  std::string problem;  ///< what is wrong with its quotes; empty: nothing
};

/// Rows end with LF or CRLF; a blank line is none. A byte order mark at the front is left out.
std::vector<CsvRow> parse_csv(std::string_view text);

}  // namespace lancet
