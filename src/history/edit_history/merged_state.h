// The states of several streams as one.
#pragma once

#include <set>
#include <span>
#include <string>

#include "lancet/edit_history/edit_history.h"

namespace lancet {

/// Puts the steps of histories one after the other. Columns go after columns; what is measured once stays as the
/// first one has it.
class MergedState {
 public:
  /// The steps that follow are of another history.
  void begin_history();

  /// The step that leads on from what was put so far.
  StateStep next(const StateStep& step);

  /// Whether a later history replaced what is not its own alone: columns that it compressed, running numbers. They are
  /// left out.
  bool left_out() const { return left_out_; }

 private:
  std::set<std::string> known_;   ///< names
  std::set<std::string> shared_;  ///< those of earlier histories
  std::set<std::string> own_;     ///< those of the history under way
  bool left_out_ = false;
};

/// Whether all batches are of one method.
bool has_one_method(std::span<const EditHistory* const> histories);

}  // namespace lancet
