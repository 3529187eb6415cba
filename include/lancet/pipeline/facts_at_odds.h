// What a job's facts are to each other, and to those that stand: the same one twice, or one with other targets.
// Defined in edit_stream.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/requests/request.h"

namespace lancet {

struct EditedFacts {
  std::span<const EditRequest> requests;  ///< requests of the job
  std::span<const EditRequest> standing;  ///< edited before it
  std::span<const std::string> joined;    ///< RequestFile::joined; empty: none
};

/// A line for each kind, with the first few of them; empty: nothing is at odds.
std::vector<std::string> facts_at_odds(const EditedFacts& facts);

}  // namespace lancet
