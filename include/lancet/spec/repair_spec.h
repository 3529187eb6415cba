// `editor.repair:` what is trained after each batch of a stream.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

inline constexpr std::string_view kRepairedMethods = "memit alphaedit nse";

struct RepairSpec {
  static constexpr IntegerOption kRevisit{
      {.key = "revisit",
       .meaning = "each pass also trains on this many earlier requests of the stream; they are taken in turn, in an "
                  "order drawn with `run.seed`",
       .unit = "requests"},
      {.min = 0},
      50};
  static constexpr NumberOption kMargin{
      {.key = "margin",
       .meaning = "a request holds if its target tokens all lead every other token by this much in log p; it is then "
                  "not trained, and training ends when all requests hold"},
      {.min = 0},
      0.5};
  static constexpr IntegerOption kSteps{{.key = "steps", .meaning = "largest number of passes"}, {.min = 1}, 20};
  static constexpr NumberOption kLr{
      {.key = "lr", .meaning = "learning rate of Adam (0.9, 0.999, 1e-8)"}, {.min = 1e-12}, 1e-3};
  static constexpr IntegerOption kBatch{
      {.key = "batch", .meaning = "requests in one update", .unit = "requests"}, {.min = 1}, 10};
  static constexpr NumberOption kWhiten{
      {.key = "whiten",
       .meaning = "directions of keys that are rare in text get longer steps: Adam optimises A in Delta = A (C / mean "
                  "+ `whiten` I)^{-1/2}, where mean is the mean eigenvalue of C",
       .methods = "memit nse"},
      {.min = 1e-9},
      0.01};
  static constexpr AnyOption kAll[] = {&kRevisit, &kMargin, &kSteps, &kLr, &kBatch, &kWhiten};
};

}  // namespace lancet
