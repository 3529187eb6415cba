// How edits are taken back: flags of `lancet undo`, keywords of lancet.undo().
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct UndoSpec {
  static constexpr IntegerOption kLast{{.key = "last", .meaning = "how many of the last batches"}, {.min = 1}, 1};
  static constexpr std::string_view kModeNames[] = {"auto", "last", "downdate", "replay"};
  static constexpr ChoiceOption kMode{
      {.key = "mode",
       .meaning = "how: `last`: of the last batches, exact; `downdate`: out of their batches' solves, in seconds; "
                  "`replay`: everything after them is edited again; `auto`: `last` where it can be, else `downdate`"},
      kModeNames};
  static constexpr AnyOption kAll[] = {&kLast, &kMode};
};

}  // namespace lancet
