// The section of a job that says what `lancet erase` edits towards, and what its audit asks.
#pragma once

#include "lancet/spec/requests_spec.h"

namespace lancet {

struct RelearnSpec {
  static constexpr SectionOption kRequests{
      {.key = "requests",
       .meaning = "facts that are not erased, with `target_true`: those of the erased facts' relations are trained; as "
                  "`requests` of the job",
       .absent = "relearning is not measured"},
      RequestsSpec::kAll,
      Shape::kKeysOrRecords};
  static constexpr IntegersOption kCounts{
      {.key = "counts", .meaning = "numbers of facts that are trained, each from the erased model", .unit = "facts"},
      {.min = 1},
      "`[1, 5, 20]`"};
  static constexpr std::string_view kMethod = "ft-m";  ///< method that trains
  static constexpr IntegerOption kSteps{
      {.key = "steps", .meaning = "as of `ft-m`; all of them are run"}, {.min = 1}, 25};
  static constexpr NumberOption kLr{
      {.key = "lr", .meaning = "as of `ft-m`, on the down projections of all layers"}, {.min = 1e-12}, 5e-4};
  static constexpr AnyOption kAll[] = {&kRequests, &kCounts, &kSteps, &kLr};
};

struct EraseSpec {
  static constexpr std::string_view kAuto = "auto";
  static constexpr TextOption kTarget{
      {.key = "target",
       .meaning =
           "what the model shall say in place of a fact; `auto`: what it says most often after the fact's prompt "
           "about subjects that are made up"},
      kAuto};
  static constexpr FlagOption kOwnTargets{
      {.key = "own_targets", .meaning = "a request that has a target goes there instead"}, true};
  static constexpr TextsOption kPrompts{
      {.key = "prompts",
       .meaning = "each fact is erased in all of these; `{}` is the request's own prompt",
       .absent = "`[\"{}\"]`"}};
  static constexpr IntegerOption kSamples{
      {.key = "samples", .meaning = "answers that the audit draws after each prompt", .unit = "answers"},
      {.min = 0, .max = 10'000},
      10};
  static constexpr NumberOption kTemperature{
      {.key = "temperature", .meaning = "of these answers"}, {.min = 1e-3, .max = 100}, 1.0};
  static constexpr IntegerOption kTokens{
      {.key = "tokens", .meaning = "length of these answers", .unit = "tokens"}, {.min = 1, .max = 10'000}, 12};
  static constexpr SectionOption kRelearn{{.key = "relearn",
                                           .meaning = "whether training on related facts brings the erased ones back",
                                           .absent = "not measured"},
                                          RelearnSpec::kAll};
  static constexpr AnyOption kAll[] = {&kTarget,      &kOwnTargets, &kPrompts, &kSamples,
                                       &kTemperature, &kTokens,     &kRelearn};
};

}  // namespace lancet
