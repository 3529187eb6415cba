// Comma-separated values as RFC 4180 has them, with a header line, and as spreadsheets write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

/// Most columns of a table that are kept: no data set has a hundredth of them.
inline constexpr size_t kMostColumns = 4096;

struct CsvRow {
  std::vector<std::string> fields;  ///< the first kMostColumns
  size_t n_fields = 0;
  int64_t line = 1;     ///< line where it begins: a field in quotes may hold line breaks
  std::string problem;  ///< what is wrong with its quotes; empty: nothing
};

struct CsvTable {
  char divider = ',';        ///< character between columns
  std::vector<CsvRow> rows;  ///< the first is the header
};

/// Rows end with LF, CRLF or CR, as each of them comes; one with nothing in any field is none. Byte order marks at the
/// front are left out, and a first line "sep=;", by which Excel says what divides columns. Without it that is a comma,
/// or, where the header has one column only, what makes more of it: a semicolon (Excel, where the comma is the decimal
/// one) or a tab.
CsvTable parse_csv(std::string_view text);

}  // namespace lancet
