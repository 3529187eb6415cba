// Compares the same edits on two base models.
#pragma once

#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// How one edit differs between two base models.
struct RebasedEdit {
  std::string id = {};
  double key_cosine = 0;      ///< the least cosine of all layers between its keys in `here` and in `there`
  double residual_ratio = 0;  ///< ||R in `there`|| / ||R in `here`|| over all layers
};

/// Compares the edits that have solved systems in both histories, in the order of `there`. If a weight has several
/// changes, the first one counts.
std::vector<RebasedEdit> compare_edits(const EditHistory& here, const EditHistory& there);

}  // namespace lancet
