// How a model continues prompts: flags of `lancet generate`, keywords of lancet.Session.generate().
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct GenerateSpec {
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "new tokens at most"}, {.min = 1, .max = 1'000'000}, 40};
  static constexpr NumberOption kTemperature{
      {.key = "temperature",
       .meaning = "tokens are drawn, with logits divided by this; without it, `top_k` and `top_p` the likeliest token "
                  "is taken"},
      {.min = 1e-6, .max = 1e5},
      1.0};
  static constexpr IntegerOption kTopK{
      {.key = "top_k", .meaning = "tokens are drawn from so many likeliest ones; 0: from all"}, {.min = 0}, 0};
  static constexpr NumberOption kTopP{
      {.key = "top_p", .meaning = "tokens are drawn from the fewest likeliest ones whose probabilities sum to this"},
      {.min = 1e-9, .max = 1},
      1.0};
  static constexpr IntegerOption kSeed{
      {.key = "seed", .meaning = "of the random numbers; a row's depend on it and on the row's number"}, {.min = 0}, 0};
  static constexpr IntegerOption kSamples{
      {.key = "samples", .meaning = "continuations of each prompt"}, {.min = 1, .max = 1'000'000}, 1};
  /// Any of these makes tokens drawn.
  static constexpr AnyOption kDrawing[] = {&kTemperature, &kTopK, &kTopP};
  static constexpr AnyOption kAll[] = {&kTokens, &kTemperature, &kTopK, &kTopP, &kSeed, &kSamples};
};

}  // namespace lancet
