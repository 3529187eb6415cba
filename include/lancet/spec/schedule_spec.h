// `schedule:` of a job: a stream of edits, and what may end it.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct DriftAlarmSpec {
  static constexpr NumberOption kTextKl{
      {.key = "text_kl",
       .meaning = "the alarm goes off when the mean KL on the text of `evaluate.side_effects` is above this, in nats"},
      {.min = 1e-12}};
  static constexpr std::string_view kActionNames[] = {"stop", "warn"};
  static constexpr ChoiceOption kAction{
      {.key = "action",
       .meaning = "what happens then: `stop`: no further batch is edited, and the output has the batches up to then; "
                  "`warn`: a line on the terminal says so"},
      kActionNames};
  static constexpr AnyOption kAll[] = {&kTextKl, &kAction};
};

struct ScheduleSpec {
  static constexpr IntegerOption kBatch{{.key = "batch",
                                         .meaning = "requests that are edited together; the next batch starts from the "
                                                    "weights that this one edited; 0: all requests",
                                         .unit = "requests"},
                                        {.min = 0},
                                        0};
  static constexpr std::string_view kOrders[] = {"file", "shuffled"};
  static constexpr ChoiceOption kOrder{
      {.key = "order", .meaning = "order of the requests: as in the file, or shuffled with `run.seed`"}, kOrders};
  static constexpr IntegerOption kMeasureEvery{
      {.key = "measure_every",
       .meaning = "the edits are measured after every so many batches; 0: only at the end",
       .unit = "batches"},
      {.min = 0},
      1};
  static constexpr IntegerOption kSaveEvery{
      {.key = "save_every",
       .meaning = "the unfinished stream is saved after every so many batches, so that an interrupted job can continue",
       .affects = Affects::kWork,
       .unit = "batches"},
      {.min = 1},
      1};
  static constexpr SectionOption kDriftAlarm{
      {.key = "drift_alarm",
       .meaning = "what a stream does when its edits have changed the model's predictions on text too much; this is "
                  "measured as often as `measure_every` says",
       .absent = "off"},
      DriftAlarmSpec::kAll};
  static constexpr AnyOption kAll[] = {&kBatch, &kOrder, &kMeasureEvery, &kSaveEvery, &kDriftAlarm};
};

}  // namespace lancet
