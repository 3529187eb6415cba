#include "lancet/models/target_places.h"

#include <torch/types.h>

#include <algorithm>

namespace lancet {
namespace {

/// Returns the places that predict the target, then place 0 where it is read and none of them.
std::vector<int64_t> places_of(const RowTarget& row) {
  std::vector<int64_t> places;
  for (size_t j = 0; j < row.target.size(); ++j) places.push_back(row.first_place + static_cast<int64_t>(j));
  if (row.reads_beginning && (places.empty() || places.front() > 0)) places.push_back(0);
  return places;
}

}  // namespace

TargetPlaces target_places(std::span<const RowTarget> rows) {
  std::vector<std::vector<int64_t>> wanted;
  size_t n_outputs = 0;
  for (const RowTarget& row : rows) n_outputs = std::max(n_outputs, wanted.emplace_back(places_of(row)).size());
  TargetPlaces places;
  std::vector<int64_t> outputs;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto position = [&](size_t j) { return static_cast<int64_t>(r * n_outputs + j); };
    for (size_t j = 0; j < rows[r].target.size(); ++j) {
      places.positions.push_back(position(j));
      places.ids.push_back(rows[r].target[j]);
      places.rows.push_back(static_cast<int64_t>(r));
    }
    const auto beginning = std::ranges::find(wanted[r], 0);
    if (rows[r].reads_beginning)
      places.beginnings.push_back(position(static_cast<size_t>(beginning - wanted[r].begin())));
    for (size_t j = 0; j < n_outputs; ++j) outputs.push_back(wanted[r][std::min(j, wanted[r].size() - 1)]);
  }
  places.outputs_BO = torch::tensor(outputs, torch::kLong).view({-1, static_cast<int64_t>(n_outputs)});
  return places;
}

}  // namespace lancet
