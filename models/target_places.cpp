#include "lancet/models/target_places.h"

namespace lancet {

TargetPlaces target_places(std::span<const RowTarget> rows) {
  TargetPlaces places;
  int64_t position = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const RowTarget& row = rows[r];
    std::vector<int64_t>& outputs = places.outputs.emplace_back();
    if (row.reads_beginning) places.beginnings.push_back(position);
    if (row.reads_beginning && (row.target.empty() || row.first_place > 0)) {
      outputs.push_back(0);
      ++position;
    }
    for (size_t j = 0; j < row.target.size(); ++j) {
      outputs.push_back(row.first_place + static_cast<int64_t>(j));
      places.positions.push_back(position++);
      places.ids.push_back(row.target[j]);
      places.rows.push_back(static_cast<int64_t>(r));
    }
  }
  return places;
}

}  // namespace lancet
