// `schedule:` of a job: a stream of edits, and what may end it.
#pragma once

#include "lancet/spec/option.h"

namespace lancet {

struct DriftAlarmSpec {
  static constexpr NumberOption kTextKl{
      {.key = "text_kl", .meaning = "mean KL on the text of `evaluate.side_effects`, in nats, that sets it off"},
      {.min = 1e-12}};
  static constexpr std::string_view kActionNames[] = {"stop", "warn"};
  static constexpr ChoiceOption kAction{
      {.key = "action",
       .meaning = "`stop`: no batch is edited after it, and the output is of those before; `warn`: a line says so"},
      kActionNames};
  static constexpr AnyOption kAll[] = {&kTextKl, &kAction};
};

struct ScheduleSpec {
  static constexpr IntegerOption kBatch{
      {.key = "batch",
       .meaning = "requests edited together, the next ones on the weights as edited by them; 0: all",
       .unit = "requests"},
      {.min = 0},
      0};
  static constexpr std::string_view kOrders[] = {"file", "shuffled"};
  static constexpr ChoiceOption kOrder{
      {.key = "order", .meaning = "of the requests: as in the file, or shuffled by `run.seed`"}, kOrders};
  static constexpr IntegerOption kMeasureEvery{
      {.key = "measure_every", .meaning = "what is measured between batches; 0: only at the end", .unit = "batches"},
      {.min = 0},
      1};
  static constexpr IntegerOption kSaveEvery{{.key = "save_every",
                                             .meaning = "how often the stream is kept against interruption",
                                             .affects = Affects::kWork,
                                             .unit = "batches"},
                                            {.min = 1},
                                            1};
  static constexpr SectionOption kDriftAlarm{
      {.key = "drift_alarm",
       .meaning = "what a stream does when text has moved too far, measured as often as `measure_every` says",
       .absent = "off"},
      DriftAlarmSpec::kAll};
  static constexpr AnyOption kAll[] = {&kBatch, &kOrder, &kMeasureEvery, &kSaveEvery, &kDriftAlarm};
};

}  // namespace lancet
