// Compares the same edits on two base models.
#pragma once

#include <string>
#include <vector>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// How an edit came to another base.
struct RebasedEdit {
  std::string id = {};
  double key_cosine = 0;      ///< cosine between its keys here and there, the least of all layers
  double residual_ratio = 0;  ///< ||R there|| / ||R here|| over all layers
};

/// Compares the edits that have solved systems in both histories, in the order of `there`. The first of a weight's
/// several changes counts.
std::vector<RebasedEdit> compare_edits(const EditHistory& here, const EditHistory& there);

}  // namespace lancet
