// A layer's part of a batch under `text_budget`: all edits so far are solved for again, together with the new ones, and
// the weight's whole change stays within the share of its unedited outputs' mean square that text may move by.
#pragma once

#include "lancet/editing/editor.h"

namespace lancet {

struct LayerProblem;

class TextBudget {
 public:
  /// `share`: of tr(W0 C W0^T), which tr((W - W0) C (W - W0)^T) may reach. All else outlives this.
  TextBudget(double share, const EditContext& context, const WeightTransaction& transaction)
      : share_(share), context_(context), transaction_(transaction) {}

  /// Returns, within EditContext::solve alone, what the weight is to change by: a column for each of the problem's keys
  /// where nothing was edited before, else a dense change, since earlier edits then get others too. The problem's
  /// history is solved_columns() of earlier changes.
  WeightDelta solve(const LayerProblem& problem) const;

  /// Returns what later changes need of this one, which is applied: below each key what W - W0 gives at it.
  Tensor solved_columns(const LayerProblem& problem) const;

 private:
  Tensor change_so_far(int64_t layer) const;

  double share_;
  const EditContext& context_;
  const WeightTransaction& transaction_;
};

}  // namespace lancet
