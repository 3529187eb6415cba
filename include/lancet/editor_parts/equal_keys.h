// Requests whose texts are equal up to the end of the subject share one key and pull it to different values: what is
// done about them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/deltas/weight_update.h"
#include "lancet/requests/prepared_request.h"

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

/// Groups by the tokens up to the lookup token of the plain prompt; groups and members in the order of the requests.
KeyGroups group_by_key(std::span<const PreparedRequest> requests);

/// What is edited together, one element after another.
std::vector<KeyGroups> plan_rounds(const KeyGroups& groups, EqualKeys handling);

/// The change of keys [O, G] [G, I] as one of requests: each key's in equal parts to the requests that share it,
/// nothing to those that share none.
LowRankDelta by_request(const LowRankDelta& delta, const KeyGroups& groups, int64_t n_requests);

/// The groups of more than one request.
KeyGroups shared_keys(const KeyGroups& groups);
/// What is done about requests of one key, as SharedKeys::effect says it.
std::string equal_keys_effect(EqualKeys handling);

/// Keys of a cosine above 0.99 with another one, as groups of their columns: each pulls the others to its own value.
KeyGroups near_keys(const Tensor& keys_FN);
std::string near_keys_effect();

}  // namespace lancet
