// How far a stream has moved the held-out text, by its drift alarm: whether that was set off, and how many edits may
// still be made before it is.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lancet/job/schedule.h"
#include "lancet/outcome/batch_report.h"

namespace lancet {

struct Drift {
  double text_kl = 0;                      ///< KL after the last batch that was measured
  size_t batches = 0;                      ///< batches up to that one
  int64_t edits = 0;                       ///< edits in them
  bool is_too_far = false;                 ///< the alarm was set off there
  std::optional<int64_t> edits_left = {};  ///< edits until it is, if KL grows by edit as between the last two measures
};

/// Returns nullopt where nothing was measured. The unedited model, whose KL is 0, counts as a measure.
std::optional<Drift> drift_of(const DriftAlarm& alarm, std::span<const BatchReport> batches);

/// Returns "text_kl 0.012 of 0.05: about 150 more edits".
std::string drift_text(const DriftAlarm& alarm, const Drift& drift);

}  // namespace lancet
