#include "lancet/editing/edit_outcome.h"

#include <algorithm>
#include <set>

namespace lancet {

void EditOutcome::note_values(std::span<const int64_t> places, const OptimizedValues& values) {
  batching.batches += values.batching.batches;
  batching.largest = std::max(batching.largest, values.batching.largest);
  batching.halvings += values.batching.halvings;
  batching.resumed += values.batching.resumed;
  std::set<int64_t> noted;
  for (size_t i = 0; i < places.size(); ++i) {
    RequestOutcome& request = requests[static_cast<size_t>(places[i])];
    const bool is_known = !noted.insert(places[i]).second;
    if (is_known && values.losses[i].back().total <= *request.final_loss) continue;
    request.steps = static_cast<int64_t>(values.losses[i].size());
    request.initial_loss = values.losses[i].front().total;
    request.final_loss = values.losses[i].back().total;
    request.initial_norm = values.initial_norms[i];
    request.delta_norm = values.delta_norms[i];
    request.losses.clear();
    for (const ValueLoss& loss : values.losses[i]) request.losses.push_back(static_cast<float>(loss.total));
  }
}

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
