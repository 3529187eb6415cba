// Reads the records of a table (.csv): the names in its header, its rows, and the additions of other programs.
#pragma once

#include <string>

#include "record_source.h"

namespace lancet {

/// Reads a record from each row. A column that occurs several times is a list; an empty field is absent. A column
/// without a name that counts the rows is the index of pandas: it is left out, with a note. An empty column without a
/// name is left out. Throws: ConfigError "source: line 1: ..." if the header cannot be read, another column has no
/// name, or the range is empty.
SourceRecords read_table(const std::string& text, const std::string& source, RequestRange range);

}  // namespace lancet
