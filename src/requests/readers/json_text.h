// JSON of data sets as Python writes it: NaN reads as null. Keys that stand twice are told, since one of the two values
// would be lost without a word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "record_reader.h"

namespace lancet {

struct RepeatedKey {
  int64_t element = 0;  ///< index in the list that the text is
  std::string key;
};

struct JsonText {
  RecordJson value;
  std::vector<RepeatedKey> repeated;
};

/// Throws: ConfigError "not valid JSON: ...", also for nesting deeper than any record's.
JsonText parse_json_text(std::string_view text);

}  // namespace lancet
