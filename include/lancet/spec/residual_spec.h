// Options of an editor: what the residuals of locate-then-edit methods are made of, and what all of a stream may come
// to.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

inline constexpr std::string_view kReplayingMethods = "memit emmet alphaedit nse evoedit betaedit";

struct ResidualSpec {
  static constexpr FlagOption kErrorFeedback{
      {.key = "error_feedback",
       .meaning = "the next change of a weight makes up for what `rect` or `revive` removed from the last one; the "
                  "state of a stream then has one more matrix for each weight, of the weight's size",
       .methods = "memit alphaedit nse",
       .affects = Affects::kState},
      false};
  static constexpr NumberOption kTextBudget{
      {.key = "text_budget",
       .meaning =
           "how far all batches together may move a projection's outputs on text: the mean square of the movement as a "
           "share of the mean square of the outputs; the outputs for earlier keys are kept; 0: no limit",
       .methods = "memit",
       .affects = Affects::kState},
      {.min = 0},
      0.0};
  static constexpr std::string_view kTargetsNames[] = {"last", "replay"};
  static constexpr ChoiceOption kTargets{
      {.key = "targets",
       .meaning = "the target of each layer: `last`: a share of the residual at the last layer; `replay`: a value of "
                  "its own: the value is found at the first layer, and a forward pass over the prompt with it gives "
                  "the values of the other layers",
       .methods = kReplayingMethods},
      kTargetsNames};
  static constexpr AnyOption kAll[] = {&kTargets, &kErrorFeedback, &kTextBudget};
};

}  // namespace lancet
