// Compares a job's facts with each other and with earlier edits: the same fact may occur twice, or with different
// targets. Defined in edit_stream.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/requests/request.h"

namespace lancet {

struct EditedFacts {
  std::span<const EditRequest> requests;  ///< requests of the job
  std::span<const EditRequest> standing;  ///< requests that were edited before the job
  std::span<const std::string> joined;    ///< RequestFile::joined; empty: none
};

/// Returns one line per kind of conflict, with its first few facts; empty: there is none.
std::vector<std::string> facts_at_odds(const EditedFacts& facts);

}  // namespace lancet
