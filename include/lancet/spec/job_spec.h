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
       .meaning = "folder for the edited model; for a GGUF model it can be a file, such as `edited.gguf`: the report "
                  "and the edits are then in the folder `edited.gguf.edits` beside it",
       .affects = Affects::kWork}};
  static constexpr FlagOption kReplace{
      {.key = "replace",
       .meaning =
           "replace an earlier output in this folder; a folder with files that lancet did not write is never replaced",
       .affects = Affects::kWork},
      false};
  static constexpr FlagOption kState{
      {.key = "state", .meaning = "write the data that `continue_from` needs, too", .affects = Affects::kWork}, true};
  static constexpr std::string_view kFormats[] = {"auto", "checkpoint", "adapter", "mixed", "quantised", "gguf"};
  static constexpr ChoiceOption kFormat{
      {.key = "format",
       .meaning =
           "form of the output: `checkpoint`: the model with edited weights, in the types that its weights have; "
           "`adapter`: a LoRA adapter for the unedited model; for a quantised model also `mixed`: edited weights in "
           "full precision, all others unchanged, or `quantised`: edited weights in the model's own format; for a GGUF "
           "file `gguf`: the same file with edited matrices; `auto`: `gguf` for a GGUF file; `adapter` if quantised "
           "weights are edited, but `mixed` if these are experts in one tensor; else `checkpoint`"},
      kFormats};
  static constexpr std::string_view kRoundings[] = {"edits", "statistics", "nearest"};
  static constexpr ChoiceOption kRounding{
      {.key = "rounding",
       .meaning = "how `format: quantised` rounds: `edits`: the error is minimised on the edits and on text; "
                  "`statistics`: on text only; `nearest`: each number is rounded to the nearest one"},
      kRoundings};
  static constexpr NumberOption kCovarianceWeight{
      {.key = "covariance_weight", .meaning = "with `rounding: edits`, the weight of text against the edits"},
      {.min = 1e-6},
      30};
  static constexpr std::string_view kGgufTypes[] = {"auto", "Q8_0", "F16", "BF16", "F32", "own"};
  static constexpr ChoiceOption kGgufType{
      {.key = "gguf_type",
       .meaning = "type of edited matrices in `format: gguf`; `own`: the type that they had, if lancet can write it; "
                  "`auto`: `Q8_0` if they were quantised, else the type that they had"},
      kGgufTypes};
  static constexpr AnyOption kAll[] = {&kDir, &kReplace, &kState, &kFormat, &kRounding, &kCovarianceWeight, &kGgufType};
};

struct RunSpec {
  static constexpr TextsOption kDevices{{.key = "devices",
                                         .meaning = "`auto`, or a list of devices: `[cuda:0, cuda:1]`, `[cuda:0=20GiB, "
                                                    "cpu]`; `=20GiB` limits the memory of a device",
                                         .affects = Affects::kWork},
                                        {},
                                        Vocabulary::kFree,
                                        "auto"};
  static constexpr std::string_view kBalanceNames[] = {"memory", "work"};
  static constexpr ChoiceOption kBalance{
      {.key = "balance",
       .meaning =
           "what several devices share equally: `memory`: the used share of their memory; `work`: their working time",
       .affects = Affects::kWork},
      kBalanceNames};
  static constexpr std::string_view kDTypeNames[] = {"auto", "f32", "bf16", "f16", "f64"};
  static constexpr ChoiceOption kDType{
      {.key = "dtype", .meaning = "number type of weights and activations; `auto`: that of the checkpoint"},
      kDTypeNames};
  static constexpr std::string_view kQuantiseBaseNames[] = {"none", "int8", "nf4", "fp8"};
  static constexpr ChoiceOption kQuantiseBase{
      {.key = "quantise_base",
       .meaning =
           "how matrices that are not edited are kept in memory while the job runs: `none`: as in the checkpoint; else "
           "they are quantised while they are loaded, which takes less memory and is less exact"},
      kQuantiseBaseNames};
  static constexpr std::string_view kSolveOnNames[] = {"auto", "device", "host"};
  static constexpr ChoiceOption kSolveOn{
      {.key = "solve_on",
       .meaning = "where second moments, their factors, solves and exact edited weights are: `device`: on the device "
                  "of each layer; `host`: all in the host's memory, which is slower; `auto`: on the host if the "
                  "devices have too little memory",
       .affects = Affects::kWork},
      kSolveOnNames};
  static constexpr IntegerOption kSeed{{.key = "seed",
                                        .meaning = "seed of the contexts and texts that the model writes, of "
                                                   "shuffling, and of the combinations that a tune tries"},
                                       {.min = 0},
                                       0};
  static constexpr IntegerOption kThreads{
      {.key = "threads", .meaning = "CPU threads; 0: all", .affects = Affects::kWork}, {.min = 0, .max = 4096}, 0};
  static constexpr IntegerOption kTimeout{
      {.key = "timeout_s",
       .meaning = "the job ends if one of several processes makes no progress for this time",
       .affects = Affects::kWork,
       .unit = "seconds"},
      {.min = 1, .max = 10'000'000},
      1800};
  static constexpr FlagOption kCudaGraphs{
      {.key = "cuda_graphs",
       .meaning = "launch each step of value optimisation on the GPU as one CUDA graph, not kernel by kernel: this is "
                  "faster if few requests are edited",
       .affects = Affects::kWork},
      false};
  static constexpr IntegerOption kRanksPerModel{{.key = "ranks_per_model",
                                                 .meaning = "number of processes that hold one model together, each of "
                                                            "them some of its layers: 1, or all processes of the job",
                                                 .affects = Affects::kWork},
                                                {.min = 1, .max = 1024},
                                                1};
  static constexpr AnyOption kAll[] = {&kDevices, &kBalance, &kDType,   &kQuantiseBase, &kSolveOn,
                                       &kSeed,    &kThreads, &kTimeout, &kCudaGraphs,   &kRanksPerModel};
};

struct JobSpec {
  static constexpr PathOption kModel{
      {.key = "model",
       .meaning = "the model: a Hugging Face folder, a folder of the local Hugging Face cache, or a GGUF file"}};
  static constexpr TextsOption kIgnoreConfigKeys{
      {.key = "ignore_config_keys",
       .meaning = "keys of config.json that lancet does not know and should ignore, because you know that they do not "
                  "change what the model computes"}};
  static constexpr SectionOption kRequests{{.key = "requests",
                                            .meaning = "the facts to edit: a file, or a list of records: `[{prompt: "
                                                       "\"The capital of {} is\", subject: France, target: Rome}]`",
                                            .absent = "required, except by commands that do not use it"},
                                           RequestsSpec::kAll,
                                           Shape::kKeysOrRecords};
  static constexpr SectionOption kEditor{{.key = "editor",
                                          .meaning = "the method that edits the model, and its options",
                                          .absent = "from `lancet.yaml` in the model folder"},
                                         kEditorOptions};
  static constexpr SectionOption kStatistics{
      {.key = "statistics",
       .meaning =
           "how the second moments of keys on text are found: most methods use them to protect what the model knows",
       .absent = "from `lancet.yaml` in the model folder, else the defaults below"},
      StatisticsSpec::kAll};
  static constexpr SectionOption kSchedule{
      {.key = "schedule", .meaning = "how the requests are split into batches, which are edited one after another"},
      ScheduleSpec::kAll};
  static constexpr PathOption kContinueFrom{
      {.key = "continue_from",
       .meaning = "folder of an earlier output on the same base model: the new edits are added to its edits",
       .absent = "none"}};
  static constexpr SectionOption kEvaluate{
      {.key = "evaluate", .meaning = "what is measured; a list is short for `{metrics: [...]}`"},
      EvaluateSpec::kAll,
      Shape::kKeysOrNames};
  static constexpr SectionOption kAccept{
      {.key = "accept",
       .meaning = "the lowest acceptable means of measured metrics: `{efficacy_prob: 0.9}`; if a mean is lower, no "
                  "model is written: lancet exits with code 5 and writes only the report, to `<dir>.rejected`",
       .absent = "none"},
      {},
      Shape::kShares};
  static constexpr SectionOption kOutput{
      {.key = "output", .meaning = "what is written, and where", .absent = "only where a command writes none"},
      OutputSpec::kAll};
  static constexpr SectionOption kTune{
      {.key = "tune", .meaning = "what `lancet tune` tries, and on which requests", .absent = "the defaults below"},
      TuneSpec::kAll};
  static constexpr SectionOption kErase{{.key = "erase",
                                         .meaning = "how `lancet erase` erases facts, and how it checks the result",
                                         .absent = "the defaults below"},
                                        EraseSpec::kAll};
  static constexpr SectionOption kCompare{{.key = "compare",
                                           .meaning = "the editors that `lancet compare` compares, each with a label: "
                                                      "`{memit: {method: memit}, other: {method: alphaedit}}`",
                                           .absent = "required by `lancet compare` without `--methods`"},
                                          {},
                                          Shape::kEditors};
  static constexpr IntegerOption kSeeds{
      {.key = "seeds",
       .meaning = "how often `lancet compare` runs each editor, with the seeds `run.seed`, `run.seed` + 1, ...; with "
                  "more than one run the table shows means and standard deviations"},
      {.min = 1, .max = 1000},
      1};
  static constexpr SectionOption kExpect{
      {.key = "expect",
       .meaning = "published results for labels of `compare`: `{memit: {efficacy_prob: 0.989}}`; `lancet compare "
                  "--expect` shows them beside the measured ones",
       .absent = "none"},
      {},
      Shape::kLabelledShares};
  static constexpr SectionOption kRun{
      {.key = "run", .meaning = "devices, number types, seed and other settings of the computation"}, RunSpec::kAll};
  static constexpr AnyOption kAll[] = {
      &kModel,  &kIgnoreConfigKeys, &kRequests, &kEditor, &kStatistics, &kSchedule, &kContinueFrom, &kEvaluate,
      &kAccept, &kOutput,           &kTune,     &kErase,  &kCompare,    &kSeeds,    &kExpect,       &kRun};
};

}  // namespace lancet
