// `editor.repair:` what is trained after each batch of a stream.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

inline constexpr std::string_view kRepairedMethods = "memit alphaedit nse";

struct RepairSpec {
  static constexpr IntegerOption kRevisit{
      {.key = "revisit",
       .meaning = "earlier requests of the stream that each pass has beside the batch's, the next of an order drawn by "
                  "`run.seed`",
       .unit = "requests"},
      {.min = 0},
      50};
  static constexpr NumberOption kMargin{
      {.key = "margin",
       .meaning = "a request holds whose target tokens all lead any other token by this much of log p: it is not "
                  "trained, and passes end when it is so of all"},
      {.min = 0},
      0.5};
  static constexpr IntegerOption kSteps{{.key = "steps", .meaning = "passes at most"}, {.min = 1}, 20};
  static constexpr NumberOption kLr{
      {.key = "lr", .meaning = "learning rate of Adam (0.9, 0.999, 1e-8)"}, {.min = 1e-12}, 1e-3};
  static constexpr IntegerOption kBatch{
      {.key = "batch", .meaning = "requests of one update", .unit = "requests"}, {.min = 1}, 10};
  static constexpr NumberOption kWhiten{
      {.key = "whiten",
       .meaning = "the less a direction of keys is used in text, the longer Adam's steps in it; added to its share of "
                  "C, in means",
       .methods = "memit nse"},
      {.min = 1e-9},
      0.01};
  static constexpr AnyOption kAll[] = {&kRevisit, &kMargin, &kSteps, &kLr, &kBatch, &kWhiten};
};

}  // namespace lancet
