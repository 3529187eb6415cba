// The arguments of EasyEdit's edit() as one object: lists of equal length, whose entries i belong to request i.
#pragma once

#include <string>

#include "record_reader.h"

namespace lancet {

inline bool is_easyedit_lists(const RecordJson& document) {
  return document.is_object() && document.contains("prompts");
}

/// Returns a list of records in the flat format. Throws: ConfigError with every list of another length, "source:
/// subject: ...".
RecordJson to_records(const RecordJson& lists, const std::string& source);

}  // namespace lancet
