// A layer's part of a batch under `text_budget`. All edits so far are solved again together with the new ones, so that
// the weight's whole change moves its outputs on text by at most a share of their mean square.
#pragma once

#include "lancet/editing/editor.h"

namespace lancet {

struct LayerProblem;

class TextBudget {
 public:
  /// `share`: tr((W - W0) C (W - W0)^T) is at most this share of tr(W0 C W0^T). All other arguments must outlive this
  /// object.
  TextBudget(double share, const EditContext& context, const WeightTransaction& transaction)
      : share_(share), context_(context), transaction_(transaction) {}

  /// Returns the change of the weight. Call it only inside EditContext::solve. The change has a column for each key of
  /// the problem if nothing was edited before. Else it is dense, because the changes of earlier edits are different
  /// then. The problem's history is what solved_columns() returned for earlier changes.
  WeightDelta solve(const LayerProblem& problem) const;

  /// Returns what later changes need of this one, after it was applied: each key, and below it the result of W - W0 for
  /// this key.
  Tensor solved_columns(const LayerProblem& problem) const;

 private:
  Tensor change_so_far(int64_t layer) const;

  double share_;
  const EditContext& context_;
  const WeightTransaction& transaction_;
};

}  // namespace lancet
