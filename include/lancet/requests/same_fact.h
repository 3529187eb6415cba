// Finds requests that are of one fact: the later one replaces the earlier, says it again, or contradicts it.
// Defined in request.cpp.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lancet/requests/request.h"

namespace lancet {

/// Returns the text with runs of white space as one space, and none at the ends.
std::string evenly_spaced(std::string_view text);

/// The prompt with "{}" in the subject's place, evenly spaced.
std::string marked_prompt(const SubjectPrompt& prompt);

/// What a fact is found by, texts with runs of white space as one space: subject and prompt with the subject's place
/// marked, and subject and relation where it has both. Requests are of one fact when they have one of these in common.
std::vector<std::string> fact_keys(const EditRequest& request);

/// Equal texts, one among the other's aliases, or equal ids of the data set.
bool has_same_target(const EditRequest& one, const EditRequest& other);

/// The latest request of each fact. Requests outlive it.
class LatestFacts {
 public:
  /// The latest of `request`'s fact; null: there is none.
  const EditRequest* find(const EditRequest& request) const;
  /// Finds likewise; `request` is the latest from now on.
  const EditRequest* replace(const EditRequest& request);

 private:
  std::map<std::string, const EditRequest*> latest_;
};

/// Requests of one fact with other targets: places, the earlier one first.
using RequestPairs = std::vector<std::pair<size_t, size_t>>;

/// Each request with the one before it of the same fact, where the targets differ.
RequestPairs find_contradictions(std::span<const EditRequest> requests);

/// Leaves each prompt with one target once: what is measured of a later one (paraphrases, neighbours, ...) is added to
/// the first. Those of which both have questions of several hops stay two, since each question is one of its own.
/// RequestFile::joined names those that are gone.
RequestFile each_fact_once(RequestFile file);

}  // namespace lancet
