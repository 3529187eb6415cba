// How far a stream has moved the model's predictions on the held-out text: whether the drift alarm has gone off, and if
// not, about how many more edits are possible before it does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lancet/job/schedule.h"
#include "lancet/outcome/batch_report.h"

namespace lancet {

struct Drift {
  double text_kl = 0;       ///< KL after the last batch for which it was measured
  size_t batches = 0;       ///< number of batches up to that one
  int64_t edits = 0;        ///< number of edits in them
  bool is_too_far = false;  ///< the alarm went off there
  /// Edits until the alarm, if each edit adds as much KL as between the last two measures.
  std::optional<int64_t> edits_left = {};
};

/// Computes the drift; nullopt if nothing was measured. The unedited model, whose KL is 0, counts as a measure.
std::optional<Drift> drift_of(const DriftAlarm& alarm, std::span<const BatchReport> batches);

/// Returns "text_kl 0.012 of 0.05: about 150 more edits".
std::string drift_text(const DriftAlarm& alarm, const Drift& drift);

}  // namespace lancet
