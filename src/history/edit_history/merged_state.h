// Joins the states of several streams.
#pragma once

#include <set>
#include <span>
#include <string>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// Appends the steps of histories to each other. Columns are appended to columns; of what is measured only once, the
/// first history's version stays.
class MergedState {
 public:
  /// Says that the following steps belong to another history.
  void begin_history();

  /// Returns the step that continues from everything appended so far.
  StateStep next(const StateStep& step);

  /// Whether something was left out: a later history replaced a tensor that is not only its own, such as compressed
  /// columns or running sums.
  bool left_out() const { return left_out_; }

 private:
  std::set<std::string> known_;   ///< all names
  std::set<std::string> shared_;  ///< names in earlier histories
  std::set<std::string> own_;     ///< names in the current history
  bool left_out_ = false;
};

/// Whether all batches are of one method.
bool has_one_method(std::span<const EditHistory* const> histories);

}  // namespace lancet
