// Reads comma-separated values with a header line, as RFC 4180 defines them and as spreadsheets write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lancet {

/// The most columns of a table that are kept. No known data set has a hundredth of them.
inline constexpr size_t kMostColumns = 4096;

struct CsvRow {
  std::vector<std::string> fields;  ///< the first kMostColumns
  size_t n_fields = 0;
  int64_t line = 1;     ///< line on which it begins; a quoted field may contain line breaks
  std::string problem;  ///< the error in its quotes; empty: none
};

struct CsvTable {
  char divider = ',';        ///< the character between columns
  std::vector<CsvRow> rows;  ///< the first is the header
};

/// Parses a table. Rows end with LF, CRLF or CR, which may be mixed; rows with only empty fields are left out. Byte
/// order marks at the beginning are skipped, and so is a first line "sep=;", with which Excel names the divider.
/// Without this line the divider is a comma; but if the header then has only one column, it is a semicolon (Excel,
/// where the decimal sign is a comma) or a tab, if that gives more columns.
CsvTable parse_csv(std::string_view text);

}  // namespace lancet
