// A stream of edits: which requests are edited together, in which order, and what is done between.
// Defined in evaluation_config.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/spec/schedule_spec.h"

namespace lancet {

enum class BatchOrder { kFile, kShuffled };

/// The drift of text that is too far, and what a stream does then.
struct DriftAlarm {
  enum class Action { kStop, kWarn };

  double text_kl = 0;  ///< most mean KL on the held-out text, in nats
  Action action = Action::kStop;
};

struct ScheduleOptions {
  /// Requests edited together, the next ones on the weights as edited by them; 0: all.
  int64_t batch = *ScheduleSpec::kBatch.fallback;
  BatchOrder order = BatchOrder::kFile;
  int64_t measure_every = *ScheduleSpec::kMeasureEvery.fallback;  ///< batches; 0: only at the end
  int64_t save_every = *ScheduleSpec::kSaveEvery.fallback;        ///< batches, against interruption
  std::optional<DriftAlarm> drift_alarm = {};

  /// Returns the size of the largest batch of n requests.
  int64_t largest_batch(int64_t n_requests) const { return batch > 0 ? std::min(batch, n_requests) : n_requests; }
  int64_t n_batches(int64_t n_requests) const;
  /// Requests that are measured between batches, each as often as it is.
  int64_t measured_between(int64_t n_requests) const;
  /// Whether requests are measured after batch i of n, the last one aside: that is measured with all requests.
  bool measures_after(size_t i, size_t n) const {
    return measure_every > 0 && i + 1 < n && (static_cast<int64_t>(i) + 1) % measure_every == 0;
  }
  bool saves_after(size_t i, size_t n) const {
    return n > 1 && (i + 1 == n || (static_cast<int64_t>(i) + 1) % save_every == 0);
  }
};

/// `schedule:` of a job.
ScheduleOptions parse_schedule(ConfigSection section);

/// Indices of each batch's requests, in the order in which they are edited. Shuffled by `seed`, everywhere alike.
std::vector<std::vector<int64_t>> plan_schedule(const ScheduleOptions& schedule, int64_t n_requests, uint64_t seed);

}  // namespace lancet
