#include "lancet/editing/edit_outcome.h"

#include <algorithm>

namespace lancet {

void EditOutcome::note_shared_keys(const std::string& effect, std::span<const std::vector<int64_t>> groups) {
  if (groups.empty()) return;
  auto known = std::find_if(shared_keys.begin(), shared_keys.end(),
                            [&](const SharedKeys& keys) { return keys.effect == effect; });
  if (known == shared_keys.end()) known = shared_keys.insert(shared_keys.end(), SharedKeys{effect, {}});
  for (const std::vector<int64_t>& group : groups)
    if (std::find(known->groups.begin(), known->groups.end(), group) == known->groups.end())
      known->groups.push_back(group);
}

}  // namespace lancet
