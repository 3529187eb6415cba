// The section of a job that says what `lancet erase` edits towards, and what its audit asks.
#pragma once

#include "lancet/spec/requests_spec.h"

namespace lancet {

struct RelearnSpec {
  static constexpr SectionOption kRequests{
      {.key = "requests",
       .meaning = "facts that are not erased, with `target_true`; those that have a relation of an erased fact are "
                  "trained; the same keys as `requests` of the job",
       .absent = "relearning is not measured"},
      RequestsSpec::kAll,
      Shape::kKeysOrRecords};
  static constexpr IntegersOption kCounts{
      {.key = "counts",
       .meaning = "numbers of facts to train on; each training starts from the erased model",
       .unit = "facts"},
      {.min = 1},
      "`[1, 5, 20]`"};
  static constexpr std::string_view kMethod = "ft-m";  ///< method that trains
  static constexpr IntegerOption kSteps{
      {.key = "steps", .meaning = "number of passes of `ft-m`; training never stops earlier"}, {.min = 1}, 25};
  static constexpr NumberOption kLr{
      {.key = "lr", .meaning = "learning rate of `ft-m`, which trains the down projections of all layers"},
      {.min = 1e-12},
      5e-4};
  static constexpr AnyOption kAll[] = {&kRequests, &kCounts, &kSteps, &kLr};
};

struct EraseSpec {
  static constexpr std::string_view kAuto = "auto";
  static constexpr TextOption kTarget{
      {.key = "target",
       .meaning = "what the model should say in place of a fact; `auto`: the word that it says most often when the "
                  "fact's prompt is about a made-up subject"},
      kAuto};
  static constexpr FlagOption kOwnTargets{
      {.key = "own_targets", .meaning = "edit a request that has its own target towards that target instead"}, true};
  static constexpr TextsOption kPrompts{{.key = "prompts",
                                         .meaning = "templates in which each fact is erased; `{}` is the request's own "
                                                    "prompt; `[]`: only the request's own prompt",
                                         .absent = "`[\"{}\"]`"}};
  static constexpr IntegerOption kSamples{
      {.key = "samples", .meaning = "number of answers that the audit samples after each prompt", .unit = "answers"},
      {.min = 0, .max = 10'000},
      10};
  static constexpr NumberOption kTemperature{
      {.key = "temperature", .meaning = "temperature of the sampled answers"}, {.min = 1e-3, .max = 100}, 1.0};
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "largest length of the sampled answers", .unit = "tokens"},
      {.min = 1, .max = 10'000},
      12};
  static constexpr SectionOption kRelearn{
      {.key = "relearn",
       .meaning = "measures whether training on related facts brings the erased facts back",
       .absent = "not measured"},
      RelearnSpec::kAll};
  static constexpr AnyOption kAll[] = {&kTarget,      &kOwnTargets, &kPrompts, &kSamples,
                                       &kTemperature, &kTokens,     &kRelearn};
};

}  // namespace lancet
