// Records of a table (.csv): its header's names, its rows, and what programs put into tables beside them.
#pragma once

#include <string>

#include "record_source.h"

namespace lancet {

/// A record for each row: a column that stands several times is a list, an empty field is absent. A column without a
/// name that counts the rows is pandas' index, which is left out and noted; one with nothing in it is left out.
/// Throws: ConfigError "source: line 1: ..." for a header that cannot be read, another column without a name, and a
/// range that leaves nothing.
SourceRecords read_table(const std::string& text, const std::string& source, RequestRange range);

}  // namespace lancet
