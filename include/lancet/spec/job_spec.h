// The job file: its sections, and those that no other file here has.
#pragma once

#include "lancet/spec/editor_spec.h"
#include "lancet/spec/erase_spec.h"
#include "lancet/spec/evaluate_spec.h"
#include "lancet/spec/requests_spec.h"
#include "lancet/spec/schedule_spec.h"
#include "lancet/spec/statistics_spec.h"
#include "lancet/spec/tune_spec.h"

namespace lancet {

struct OutputSpec {
  static constexpr PathOption kDir{
      {.key = "dir",
       .meaning = "folder of the edited model; of a GGUF model also a file, `edited.gguf`, with the folder "
                  "`edited.gguf.edits` beside it for everything else",
       .affects = Affects::kWork}};
  static constexpr FlagOption kReplace{{.key = "replace",
                                        .meaning = "an earlier output may be replaced, if all in it is lancet's",
                                        .affects = Affects::kWork},
                                       false};
  static constexpr FlagOption kState{
      {.key = "state", .meaning = "what `continue_from` needs is written too", .affects = Affects::kWork}, true};
  static constexpr std::string_view kFormats[] = {"auto", "checkpoint", "adapter", "mixed", "quantised", "gguf"};
  static constexpr ChoiceOption kFormat{
      {.key = "format",
       .meaning =
           "`checkpoint`: the model with its edited weights in the types that it has; `adapter`: a LoRA adapter "
           "for the untouched model; of a quantised model also `mixed`: edited weights in full precision, the "
           "others as they are, and `quantised`: edited weights in the model's own format; of a GGUF file `gguf`: the "
           "same file with its edited matrices in another type; `auto`: `gguf` of a GGUF file, else `adapter` where "
           "quantised weights are edited, `mixed` where these are experts in one tensor, else `checkpoint`"},
      kFormats};
  static constexpr std::string_view kRoundings[] = {"edits", "statistics", "nearest"};
  static constexpr ChoiceOption kRounding{
      {.key = "rounding",
       .meaning =
           "of `format: quantised`, whose errors are made good where it matters: for the `edits` and for text, for "
           "text alone by the `statistics`, or each number to the `nearest`"},
      kRoundings};
  static constexpr NumberOption kCovarianceWeight{
      {.key = "covariance_weight",
       .meaning = "the weight of text beside the edits, where rounding heeds both (`rounding: edits`)"},
      {.min = 1e-6},
      30};
  static constexpr std::string_view kGgufTypes[] = {"auto", "Q8_0", "F16", "BF16", "F32", "own"};
  static constexpr ChoiceOption kGgufType{
      {.key = "gguf_type",
       .meaning =
           "of `format: gguf`, the type of edited matrices; `own`: the type that they had, where lancet writes it; "
           "`auto`: `Q8_0` where they were quantised, else their own"},
      kGgufTypes};
  static constexpr AnyOption kAll[] = {&kDir, &kReplace, &kState, &kFormat, &kRounding, &kCovarianceWeight, &kGgufType};
};

struct RunSpec {
  static constexpr TextsOption kDevices{{.key = "devices",
                                         .meaning = "`auto`, or a list: `[cuda:0, cuda:1]`, `[cuda:0=20GiB, cpu]`",
                                         .affects = Affects::kWork},
                                        {},
                                        Vocabulary::kFree,
                                        "auto"};
  static constexpr std::string_view kBalanceNames[] = {"memory", "work"};
  static constexpr ChoiceOption kBalance{
      {.key = "balance", .meaning = "what is made even between several devices", .affects = Affects::kWork},
      kBalanceNames};
  static constexpr std::string_view kDTypeNames[] = {"auto", "f32", "bf16", "f16", "f64"};
  static constexpr ChoiceOption kDType{
      {.key = "dtype", .meaning = "of weights and activations; `auto`: the checkpoint's"}, kDTypeNames};
  static constexpr std::string_view kQuantiseBaseNames[] = {"none", "int8", "nf4", "fp8"};
  static constexpr ChoiceOption kQuantiseBase{
      {.key = "quantise_base",
       .meaning = "how matrices that are not edited are kept while the job runs: `none`: as the checkpoint has them; "
                  "else quantised while they are loaded, which takes less memory and is less exact"},
      kQuantiseBaseNames};
  static constexpr std::string_view kSolveOnNames[] = {"auto", "device", "host"};
  static constexpr ChoiceOption kSolveOn{
      {.key = "solve_on",
       .meaning = "where second moments, factors, solves and the exact edited weights lie: each layer's on its "
                  "`device`, or all on the `host`, which is slower; `auto`: on the host where the devices have no room",
       .affects = Affects::kWork},
      kSolveOnNames};
  static constexpr IntegerOption kSeed{
      {.key = "seed", .meaning = "of contexts and texts that the model writes, shuffling, and what a tune tries"},
      {.min = 0},
      0};
  static constexpr IntegerOption kThreads{
      {.key = "threads", .meaning = "CPU threads; 0: all", .affects = Affects::kWork}, {.min = 0, .max = 4096}, 0};
  static constexpr IntegerOption kTimeout{
      {.key = "timeout_s",
       .meaning = "of several processes, one without any progress for so long ends the job",
       .affects = Affects::kWork,
       .unit = "seconds"},
      {.min = 1, .max = 10'000'000},
      1800};
  static constexpr FlagOption kCudaGraphs{
      {.key = "cuda_graphs",
       .meaning = "steps of value optimisation are launched on the GPU as a whole, not kernel by kernel: faster where "
                  "few requests are edited",
       .affects = Affects::kWork},
      false};
  static constexpr IntegerOption kRanksPerModel{
      {.key = "ranks_per_model",
       .meaning = "processes that hold one model together, each some of its layers: 1, or all processes of the job",
       .affects = Affects::kWork},
      {.min = 1, .max = 1024},
      1};
  static constexpr AnyOption kAll[] = {&kDevices, &kBalance, &kDType,   &kQuantiseBase, &kSolveOn,
                                       &kSeed,    &kThreads, &kTimeout, &kCudaGraphs,   &kRanksPerModel};
};

struct JobSpec {
  static constexpr PathOption kModel{
      {.key = "model", .meaning = "a Hugging Face folder, or a folder of the local Hugging Face cache"}};
  static constexpr TextsOption kIgnoreConfigKeys{
      {.key = "ignore_config_keys", .meaning = "keys of config.json that lancet does not know and that you vouch for"}};
  static constexpr SectionOption kRequests{
      {.key = "requests",
       .meaning =
           "the facts: a file, or records in place: `[{prompt: \"The capital of {} is\", subject: France, target: "
           "Rome}]`",
       .absent = "only where a command needs none"},
      RequestsSpec::kAll,
      Shape::kKeysOrRecords};
  static constexpr SectionOption kEditor{
      {.key = "editor", .meaning = "the method and its options", .absent = "as the model folder's lancet.yaml says"},
      kEditorOptions};
  static constexpr SectionOption kStatistics{{.key = "statistics",
                                              .meaning = "second moments of the MLP's keys: what the model knows",
                                              .absent = "as the model folder's lancet.yaml says, else the defaults"},
                                             StatisticsSpec::kAll};
  static constexpr SectionOption kSchedule{{.key = "schedule", .meaning = "a stream of edits"}, ScheduleSpec::kAll};
  static constexpr PathOption kContinueFrom{
      {.key = "continue_from",
       .meaning = "an earlier output on the same base model, whose stream goes on",
       .absent = "none"}};
  static constexpr SectionOption kEvaluate{
      {.key = "evaluate", .meaning = "what is measured; a list is that of `metrics`"},
      EvaluateSpec::kAll,
      Shape::kKeysOrNames};
  static constexpr SectionOption kAccept{
      {.key = "accept",
       .meaning = "least means of metrics that are measured: `{efficacy_prob: 0.9}`; not met: exit code 5, and only "
                  "`<dir>.rejected` with the report",
       .absent = "none"},
      {},
      Shape::kShares};
  static constexpr SectionOption kOutput{
      {.key = "output", .meaning = "what is written", .absent = "only where a command writes none"}, OutputSpec::kAll};
  static constexpr SectionOption kTune{
      {.key = "tune", .meaning = "what `lancet tune` tries", .absent = "only for other commands"}, TuneSpec::kAll};
  static constexpr SectionOption kErase{
      {.key = "erase", .meaning = "how `lancet erase` erases", .absent = "as by default"}, EraseSpec::kAll};
  static constexpr SectionOption kCompare{
      {.key = "compare",
       .meaning = "editors by label, for `lancet compare`: `{memit: {method: memit}, other: {method: alphaedit}}`",
       .absent = "only for other commands"},
      {},
      Shape::kEditors};
  static constexpr IntegerOption kSeeds{
      {.key = "seeds",
       .meaning =
           "runs of each method that `lancet compare` makes, with the seeds `run.seed`, `run.seed` + 1, ...: the "
           "table then has means and standard deviations"},
      {.min = 1, .max = 1000},
      1};
  static constexpr SectionOption kExpect{
      {.key = "expect",
       .meaning = "figures that were published, by label of `compare`: `{memit: {efficacy_prob: 0.989}}`; "
                  "`--expect` of `lancet compare` shows them beside its own",
       .absent = "none"},
      {},
      Shape::kLabelledShares};
  static constexpr SectionOption kRun{{.key = "run", .meaning = "how the work is run"}, RunSpec::kAll};
  static constexpr AnyOption kAll[] = {
      &kModel,  &kIgnoreConfigKeys, &kRequests, &kEditor, &kStatistics, &kSchedule, &kContinueFrom, &kEvaluate,
      &kAccept, &kOutput,           &kTune,     &kErase,  &kCompare,    &kSeeds,    &kExpect,       &kRun};
};

}  // namespace lancet
