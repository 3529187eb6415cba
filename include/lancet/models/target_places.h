// Places at which rows with a target spliced after a prompt predict its tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/runtime/tensor.h"
#include "lancet/text/tokenizer.h"

namespace lancet {

/// A row's target and the place in the row that predicts its first token: the prompt's last one.
struct RowTarget {
  int64_t first_place = 0;
  std::span<const TokenId> target;  ///< may be empty where the beginning is read
  bool reads_beginning = false;     ///< the output at place 0 is wanted too
};

/// Labels of a batch's rows, one by one: which of the pass's outputs predicts it, its id, its row.
struct TargetPlaces {
  Tensor outputs_BO;               ///< SequenceInfo::outputs_BO; rows with fewer outputs repeat their last place
  std::vector<int64_t> positions;  ///< row * O + place among its outputs
  std::vector<int64_t> ids;
  std::vector<int64_t> rows;
  std::vector<int64_t> beginnings;  ///< the position of place 0, for each row that reads it, in their order
};

/// Every row has a target or reads its beginning, and there is at least one row.
TargetPlaces target_places(std::span<const RowTarget> rows);

}  // namespace lancet
