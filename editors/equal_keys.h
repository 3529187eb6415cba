// Requests whose texts are equal up to the end of the subject share one key and pull it to different values: what is
// done about them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/edit/prepared_request.h"
#include "lancet/edit/weight_update.h"

namespace lancet {

enum class EqualKeys {
  kWarn,  ///< nothing: the solve compromises between them
  kMean,  ///< one key with one target, the mean of theirs
  kSplit  ///< one after another, each on the weights as edited by those before
};

/// Indices of the requests that share each key.
using KeyGroups = std::vector<std::vector<int64_t>>;

/// `equal_keys` of an editor.
EqualKeys parse_equal_keys(ConfigSection& editor);

/// By the tokens up to the lookup token of the plain prompt; groups and members in the order of the requests.
KeyGroups group_by_key(std::span<const PreparedRequest> requests);

/// What is edited together, one element after another.
std::vector<KeyGroups> plan_rounds(const KeyGroups& groups, EqualKeys handling);

/// The change of keys [O, G] [G, I] as one of requests: each key's in equal parts to the requests that share it,
/// nothing to those that share none.
LowRankDelta by_request(const LowRankDelta& delta, const KeyGroups& groups, int64_t n_requests);

/// One line for each group of more than one request.
std::vector<std::string> equal_key_warnings(const KeyGroups& groups, std::span<const PreparedRequest> requests,
                                            EqualKeys handling);

/// One line for each two keys of a cosine above 0.99: each pulls the other to its own value.
std::vector<std::string> near_key_warnings(const Tensor& keys_FN, std::span<const PreparedRequest> requests);

}  // namespace lancet
