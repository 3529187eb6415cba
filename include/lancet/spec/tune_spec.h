// The section of a job that says what `lancet tune` tries.
#pragma once

#include "lancet/spec/requests_spec.h"

namespace lancet {

struct TuneSpec {
  static constexpr SectionOption kRequests{
      {.key = "requests",
       .meaning = "of its own, not those that are edited later; as `requests` of the job",
       .absent = "the first half of the job's"},
      RequestsSpec::kAll,
      Shape::kKeysOrRecords};
  static constexpr SectionOption kSearch{
      {.key = "search",
       .meaning = "keys of `editor` with the values to try: `{values.lr: [0.1, 0.5], layers: [[0, 1], [1, 2]]}`",
       .absent = "around the job's own values"},
      {},
      Shape::kLists};
  static constexpr IntegerOption kTrials{
      {.key = "trials", .meaning = "choices of values that are tried, the job's own among them"},
      {.min = 2, .max = 10000},
      16};
  static constexpr IntegerOption kHalve{
      {.key = "halve", .meaning = "a round keeps a share 1 / halve of them, on so many times the requests"},
      {.min = 2, .max = 100},
      2};
  static constexpr std::string_view kDefaultObjective[] = {"efficacy_prob", "paraphrase_prob", "specificity_prob"};
  static constexpr TextsOption kObjective{
      {.key = "objective",
       .meaning = "the harmonic mean of these metrics; where none are named, of those that the requests have prompts "
                  "for, `efficacy_argmax` where none has `target_true`"},
      kDefaultObjective,
      Vocabulary::kMetrics};
  static constexpr AnyOption kAll[] = {&kRequests, &kSearch, &kTrials, &kHalve, &kObjective};
};

}  // namespace lancet
