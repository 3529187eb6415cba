// Places at which rows with a target spliced after a prompt predict its tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lancet/text/tokenizer.h"

namespace lancet {

/// A row's target and the place in the row that predicts its first token: the prompt's last one.
struct RowTarget {
  int64_t first_place = 0;
  std::span<const TokenId> target;  ///< may be empty where the beginning is read
  bool reads_beginning = false;     ///< the output at place 0 is wanted too
};

/// Labels of rows, one by one: which of the wanted outputs predicts it, its id, its row.
struct TargetPlaces {
  std::vector<std::vector<int64_t>> outputs;  ///< places of each row that are wanted, ascending
  std::vector<int64_t> positions;             ///< each label's place among the outputs of all rows, row after row
  std::vector<int64_t> ids;
  std::vector<int64_t> rows;
  std::vector<int64_t> beginnings;  ///< the position of place 0, for each row that reads it, in their order
};

/// Every row has a target or reads its beginning.
TargetPlaces target_places(std::span<const RowTarget> rows);

}  // namespace lancet
