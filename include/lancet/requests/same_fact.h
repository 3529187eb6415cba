// Finds requests about the same fact: the later one replaces the earlier one, repeats it, or contradicts it. Defined in
// request.cpp.
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

/// Returns the text with each run of white space as one space, and none at the ends.
std::string evenly_spaced(std::string_view text);

/// Returns the prompt with "{}" in place of the subject, evenly spaced.
std::string marked_prompt(const SubjectPrompt& prompt);

/// Returns the keys that identify a fact, evenly spaced: subject and prompt with the subject's place marked; and
/// subject and relation if it has both. Two requests are about the same fact if they share a key.
std::vector<std::string> fact_keys(const EditRequest& request);

/// Whether the targets are the same: equal texts, one among the other's aliases, or equal ids in the data set.
bool has_same_target(const EditRequest& one, const EditRequest& other);

/// The latest request of each fact. The requests must outlive it.
class LatestFacts {
 public:
  /// Returns the latest request about the fact of `request`; null: there is none.
  const EditRequest* find(const EditRequest& request) const;
  /// Returns the same as find(), and makes `request` the latest.
  const EditRequest* replace(const EditRequest& request);

 private:
  std::map<std::string, const EditRequest*> latest_;
};

/// Pairs of requests about one fact with different targets, as indices, the earlier one first.
using RequestPairs = std::vector<std::pair<size_t, size_t>>;

/// Pairs each request with the one before it about the same fact, if the targets differ.
RequestPairs find_contradictions(std::span<const EditRequest> requests);

/// Keeps each prompt with one target once. What a later duplicate measures (paraphrases, neighbours, ...) is added to
/// the first request. If both have multi-hop questions, both stay, because each question is separate.
/// RequestFile::joined names the removed requests.
RequestFile each_fact_once(RequestFile file);

}  // namespace lancet
