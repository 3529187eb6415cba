#include "chunks.h"

#include <torch/types.h>

#include <algorithm>
#include <set>

namespace lancet {
namespace {

/// Puts the results of the requests at `places` there.
void put(OptimizedValues& whole, const std::vector<int64_t>& places, OptimizedValues found) {
  const torch::NoGradGuard no_grad;
  const auto n = static_cast<int64_t>(whole.losses.size());
  for (const auto& [to, from] : {std::pair{&whole.z_ND, &found.z_ND}, std::pair{&whole.delta_ND, &found.delta_ND}}) {
    if (!to->defined()) *to = torch::zeros({n, from->size(1)}, from->options());
    to->index_copy_(0, to_index(places, from->device()), *from);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const auto place = static_cast<size_t>(places[i]);
    whole.losses[place] = std::move(found.losses[i]);
    whole.initial_norms[place] = found.initial_norms[i];
    whole.delta_norms[place] = found.delta_norms[i];
  }
  whole.batching.batches += found.batching.batches;
  whole.batching.largest = std::max(whole.batching.largest, found.batching.largest);
  whole.batching.halvings += found.batching.halvings;
  whole.batching.resumed += found.batching.resumed;
}

/// Later chunks of the request at `place` get its delta to hold.
void hold(std::vector<PreparedRequest>& requests, size_t place, const std::vector<double>& delta_D) {
  const PreparedRequest& found = requests[place];
  for (PreparedRequest& later : requests)
    if (later.request == found.request && later.chunk > found.chunk)
      later.held.push_back({later.prompts[0].lookup - found.prompts[0].lookup, delta_D});
}

}  // namespace

OptimizedValues find_in_turn(std::span<const PreparedRequest> requests, const FindValues& find) {
  if (std::ranges::all_of(requests, [](const PreparedRequest& each) { return each.chunk == 0; })) return find(requests);
  std::vector<PreparedRequest> all(requests.begin(), requests.end());
  OptimizedValues whole;
  whole.losses.resize(all.size());
  whole.initial_norms.resize(all.size());
  whole.delta_norms.resize(all.size());
  for (int64_t chunk = 0;; ++chunk) {
    std::vector<int64_t> places;
    std::vector<PreparedRequest> some;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].chunk != chunk) continue;
      places.push_back(static_cast<int64_t>(i));
      some.push_back(all[i]);
    }
    if (places.empty()) return whole;
    OptimizedValues found = find(some);
    for (size_t i = 0; i < places.size(); ++i)
      hold(all, static_cast<size_t>(places[i]), to_doubles(found.delta_ND[static_cast<int64_t>(i)]));
    put(whole, places, std::move(found));
  }
}

std::vector<PreparedRequest> other_places(std::span<const PreparedRequest> chunks) {
  std::vector<PreparedRequest> others;
  std::set<int64_t> edited;
  for (size_t i = 0; i < chunks.size(); ++i) {
    edited.insert(chunks[i].prompts[0].lookup);
    if (i + 1 < chunks.size() && chunks[i + 1].request == chunks[i].request) continue;
    std::vector<TokenId> text = chunks[i].rows[0].ids;
    text.push_back(chunks[i].target.back());
    for (int64_t place = 0; place < std::ssize(text); ++place) {
      if (edited.contains(place)) continue;
      PreparedRequest& other = others.emplace_back();
      other.id = chunks[i].id;
      other.request = chunks[i].request;
      other.prompts.push_back({{text.begin(), text.begin() + place + 1}, place});
    }
    edited.clear();
  }
  return others;
}

}  // namespace lancet
