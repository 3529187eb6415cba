// One record of a request file, or of a job's inline list, as JSON to an EditRequest.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lancet/edit/request.h"

namespace lancet {

enum class RecordShape { kCounterFact, kFlat };

/// CounterFact's records are known by their "requested_rewrite".
RecordShape shape_of(const nlohmann::json& record);

/// Files of other tools carry keys that mean nothing here; a list typed into a job carries slips.
enum class UnknownKeys { kIgnore, kRefuse };

struct RecordOptions {
  RecordShape shape = RecordShape::kFlat;
  UnknownKeys unknown_keys = UnknownKeys::kIgnore;
  TargetUse targets = TargetUse::kNeeded;
};

struct RecordPlace {
  std::string source;   ///< the file, or "requests"
  int64_t index = 0;    ///< in the source
  std::string details;  ///< "line 4"; may be empty
};

/// Nothing when the record is bad: every problem of it is then in `problems`.
std::optional<EditRequest> parse_record(const nlohmann::json& record, const RecordPlace& place, RecordOptions options,
                                        std::vector<std::string>& problems);

}  // namespace lancet
