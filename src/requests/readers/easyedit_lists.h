// The arguments of EasyEdit's edit() as one object: lists of equal length, in which place i is request i.
#pragma once

#include <string>

#include "record_reader.h"

namespace lancet {

inline bool is_easyedit_lists(const RecordJson& document) {
  return document.is_object() && document.contains("prompts");
}

/// A list of records in the flat shape. Throws: ConfigError with every list of another length, "source: subject: ...".
RecordJson to_records(const RecordJson& lists, const std::string& source);

}  // namespace lancet
