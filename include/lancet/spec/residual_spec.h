// Options of an editor: what the residuals of locate-then-edit methods are made of, and what all of a stream may come
// to.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

inline constexpr std::string_view kReplayingMethods = "memit emmet alphaedit nse evoedit betaedit";

struct ResidualSpec {
  static constexpr FlagOption kErrorFeedback{
      {.key = "error_feedback",
       .meaning = "what `rect` or `revive` took off a change is made up for by the next one of that weight; a stream's "
                  "state then has a matrix of each weight's size",
       .methods = "memit alphaedit nse",
       .affects = Affects::kState},
      false};
  static constexpr NumberOption kTextBudget{
      {.key = "text_budget",
       .meaning = "most that all batches together may move a projection's outputs on text, as a share of their mean "
                  "square; earlier keys are held; 0: no limit",
       .methods = "memit",
       .affects = Affects::kState},
      {.min = 0},
      0.0};
  static constexpr std::string_view kTargetsNames[] = {"last", "replay"};
  static constexpr ChoiceOption kTargets{
      {.key = "targets",
       .meaning = "what each layer is brought towards: its share of the `last` layer's value, or, found at the first "
                  "layer and carried up by a `replay` of the prompt, a value of its own",
       .methods = kReplayingMethods},
      kTargetsNames};
  static constexpr AnyOption kAll[] = {&kTargets, &kErrorFeedback, &kTextBudget};
};

}  // namespace lancet
