// How edits are taken back: flags of `lancet undo`, keywords of lancet.undo().
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct UndoSpec {
  static constexpr IntegerOption kLast{
      {.key = "last", .meaning = "number of batches to take back, the last ones"}, {.min = 1}, 1};
  static constexpr std::string_view kModeNames[] = {"auto", "last", "downdate", "replay"};
  static constexpr ChoiceOption kMode{
      {.key = "mode",
       .meaning = "how edits are taken back: `last`: only the last batches, exactly; `downdate`: the edits are taken "
                  "out of the solves of their batches, in seconds; `replay`: everything after them is edited again "
                  "without them; `auto`: `last` if possible, else `downdate`"},
      kModeNames};
  static constexpr AnyOption kAll[] = {&kLast, &kMode};
};

}  // namespace lancet
