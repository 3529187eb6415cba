// How a model continues prompts: flags of `lancet generate`, keywords of lancet.Session.generate().
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct GenerateSpec {
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "largest number of new tokens"}, {.min = 1, .max = 1'000'000}, 40};
  static constexpr NumberOption kTemperature{{.key = "temperature",
                                              .meaning = "sample tokens, with logits divided by this; if none of this, "
                                                         "`top_k` and `top_p` is given, the likeliest token is taken"},
                                             {.min = 1e-6, .max = 1e5},
                                             1.0};
  static constexpr IntegerOption kTopK{
      {.key = "top_k", .meaning = "sample from this many likeliest tokens; 0: from all"}, {.min = 0}, 0};
  static constexpr NumberOption kTopP{
      {.key = "top_p", .meaning = "sample from the smallest set of likeliest tokens whose probabilities sum to this"},
      {.min = 1e-9, .max = 1},
      1.0};
  static constexpr IntegerOption kSeed{
      {.key = "seed", .meaning = "seed of sampling; the random numbers of a row depend on it and on the row's number"},
      {.min = 0},
      0};
  static constexpr IntegerOption kSamples{
      {.key = "samples", .meaning = "number of continuations of each prompt"}, {.min = 1, .max = 1'000'000}, 1};
  /// Any of these makes tokens drawn.
  static constexpr AnyOption kDrawing[] = {&kTemperature, &kTopK, &kTopP};
  static constexpr AnyOption kAll[] = {&kTokens, &kTemperature, &kTopK, &kTopP, &kSeed, &kSamples};
};

}  // namespace lancet
