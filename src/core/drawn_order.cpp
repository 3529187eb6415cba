#include "lancet/core/drawn_order.h"

#include <algorithm>
#include <utility>

#include "lancet/core/split_mix.h"

namespace lancet {

std::vector<int64_t> drawn_order(int64_t n, int64_t pass, uint64_t seed) {
  const uint64_t stream = split_mix(split_mix(seed) + static_cast<uint64_t>(pass));
  std::vector<std::pair<uint64_t, int64_t>> drawn;
  for (int64_t place = 0; place < n; ++place)
    drawn.emplace_back(split_mix(stream + static_cast<uint64_t>(place)), place);
  std::sort(drawn.begin(), drawn.end());
  std::vector<int64_t> order;
  for (const auto& [number, place] : drawn) order.push_back(place);
  return order;
}

}  // namespace lancet
