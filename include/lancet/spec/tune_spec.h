// The section of a job that says what `lancet tune` tries.
#pragma once

#include "lancet/spec/requests_spec.h"

namespace lancet {

struct TuneSpec {
  static constexpr SectionOption kRequests{
      {.key = "requests",
       .meaning =
           "requests on which options are tried, not those that you edit later; the same keys as `requests` of the job",
       .absent = "the first half of the job's requests"},
      RequestsSpec::kAll,
      Shape::kKeysOrRecords};
  static constexpr SectionOption kSearch{
      {.key = "search",
       .meaning = "keys of `editor` with the values to try: `{values.lr: [0.1, 0.5], layers: [[0, 1], [1, 2]]}`; "
                  "without it, lancet tries multiples of the job's numbers, and layers shifted by up to two",
       .absent = "values around those of the job"},
      {},
      Shape::kLists};
  static constexpr IntegerOption kTrials{
      {.key = "trials", .meaning = "number of combinations of values that are tried; one of them is the job's own"},
      {.min = 2, .max = 10000},
      16};
  static constexpr IntegerOption kHalve{{.key = "halve",
                                         .meaning = "each round keeps the best 1 / `halve` of the combinations; the "
                                                    "next round has `halve` times as many requests"},
                                        {.min = 2, .max = 100},
                                        2};
  static constexpr std::string_view kDefaultObjective[] = {"efficacy_prob", "paraphrase_prob", "specificity_prob"};
  static constexpr TextsOption kObjective{
      {.key = "objective",
       .meaning =
           "the best combination has the largest harmonic mean of these metrics; without this key, only metrics that "
           "the requests have prompts for are taken, and `efficacy_argmax` if no request has `target_true`"},
      kDefaultObjective,
      Vocabulary::kMetrics};
  static constexpr AnyOption kAll[] = {&kRequests, &kSearch, &kTrials, &kHalve, &kObjective};
};

}  // namespace lancet
