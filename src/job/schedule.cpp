#include "lancet/job/schedule.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "lancet/spec/read_option.h"

namespace lancet {

ScheduleOptions parse_schedule(ConfigSection section) {
  ScheduleOptions schedule;
  schedule.batch = read(section, ScheduleSpec::kBatch);
  schedule.order = read<BatchOrder>(section, ScheduleSpec::kOrder);
  schedule.measure_every = read(section, ScheduleSpec::kMeasureEvery);
  schedule.save_every = read(section, ScheduleSpec::kSaveEvery);
  if (section.has(ScheduleSpec::kDriftAlarm.key)) {
    ConfigSection alarm = section.section(ScheduleSpec::kDriftAlarm.key);
    schedule.drift_alarm = {read(alarm, DriftAlarmSpec::kTextKl),
                            read<DriftAlarm::Action>(alarm, DriftAlarmSpec::kAction)};
    alarm.finish();
    if (schedule.measure_every == 0)
      section.problem(ScheduleSpec::kMeasureEvery.key,
                      "expected 1 or more with drift_alarm, which goes by what is measured");
  }
  section.finish();
  return schedule;
}

int64_t ScheduleOptions::n_batches(int64_t n_requests) const {
  const int64_t together = std::max<int64_t>(1, largest_batch(n_requests));
  return (n_requests + together - 1) / together;
}

int64_t ScheduleOptions::measured_between(int64_t n_requests) const {
  const auto n = static_cast<size_t>(n_batches(n_requests));
  int64_t measured = 0;
  for (size_t i = 0; i < n; ++i)
    if (measures_after(i, n)) measured += (i == 0 ? 1 : 2) * largest_batch(n_requests);
  return measured;
}

std::vector<std::vector<int64_t>> plan_schedule(const ScheduleOptions& schedule, int64_t n_requests, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(n_requests));
  std::iota(order.begin(), order.end(), 0);
  if (schedule.order == BatchOrder::kShuffled) {
    // std::shuffle is another one in every library
    std::mt19937_64 random(seed);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  }
  const auto batch = static_cast<size_t>(std::max<int64_t>(1, schedule.largest_batch(n_requests)));
  std::vector<std::vector<int64_t>> batches;
  for (size_t begin = 0; begin < order.size(); begin += batch) {
    const size_t end = std::min(begin + batch, order.size());
    batches.emplace_back(order.begin() + static_cast<int64_t>(begin), order.begin() + static_cast<int64_t>(end));
  }
  return batches;
}

}  // namespace lancet
