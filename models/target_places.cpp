#include "lancet/models/target_places.h"

#include <torch/types.h>

#include <algorithm>

namespace lancet {

TargetPlaces target_places(std::span<const RowTarget> rows) {
  size_t n_outputs = 0;
  for (const RowTarget& row : rows) n_outputs = std::max(n_outputs, row.target.size());
  TargetPlaces places;
  std::vector<int64_t> outputs;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto& [first_place, target] = rows[r];
    for (size_t j = 0; j < target.size(); ++j) {
      places.positions.push_back(static_cast<int64_t>(r * n_outputs + j));
      places.ids.push_back(target[j]);
      places.rows.push_back(static_cast<int64_t>(r));
    }
    for (size_t j = 0; j < n_outputs; ++j)
      outputs.push_back(first_place + static_cast<int64_t>(std::min(j, target.size() - 1)));
  }
  places.outputs_BO = torch::tensor(outputs, torch::kLong).view({-1, static_cast<int64_t>(n_outputs)});
  return places;
}

}  // namespace lancet
