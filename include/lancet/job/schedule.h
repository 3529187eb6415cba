// A stream of edits: which requests are edited together, in which order, and what is done between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/edit/editor.h"
#include "lancet/eval/metrics.h"
#include "lancet/spec/job_spec.h"

namespace lancet {

enum class BatchOrder { kFile, kShuffled };

struct ScheduleOptions {
  int64_t batch = *ScheduleSpec::kBatch
                       .fallback;  ///< requests edited together, the next ones on the weights as edited by them; 0: all
  BatchOrder order = BatchOrder::kFile;
  int64_t measure_every = *ScheduleSpec::kMeasureEvery.fallback;  ///< batches; 0: only at the end
  int64_t save_every = *ScheduleSpec::kSaveEvery.fallback;        ///< batches, against interruption

  /// Of n requests.
  int64_t largest_batch(int64_t n_requests) const { return batch > 0 ? std::min(batch, n_requests) : n_requests; }
  int64_t n_batches(int64_t n_requests) const;
  /// Requests that are measured between batches, each as often as it is.
  int64_t measured_between(int64_t n_requests) const;
  /// Whether requests are measured behind batch i of n, the last one aside: that is measured with all requests.
  bool measures_behind(size_t i, size_t n) const {
    return measure_every > 0 && i + 1 < n && (static_cast<int64_t>(i) + 1) % measure_every == 0;
  }
  bool saves_behind(size_t i, size_t n) const {
    return n > 1 && (i + 1 == n || (static_cast<int64_t>(i) + 1) % save_every == 0);
  }
};

/// `schedule:` of a job.
ScheduleOptions parse_schedule(ConfigSection section);

/// Indices of each batch's requests, in the order in which they are edited. Shuffled by `seed`, everywhere alike.
std::vector<std::vector<int64_t>> plan_schedule(const ScheduleOptions& schedule, int64_t n_requests, uint64_t seed);

/// What one batch did and measured.
struct BatchReport {
  std::vector<int64_t> requests;       ///< indices into the job's
  double seconds = 0;                  ///< of editing alone
  EditOutcome outcome;                 ///< by place in the batch
  std::optional<Tallies> right_after;  ///< its requests, behind it; nullopt: not measured
  std::optional<Tallies> first_batch;  ///< the first batch's, at the same time
  std::vector<std::pair<std::string, double>>
      growth;  ///< ||W - W0||_F / ||W0||_F of each weight edited so far, by name
};

/// The outcomes of all batches, by the job's requests.
EditOutcome merged_outcome(const std::vector<BatchReport>& batches, size_t n_requests);

/// As text that from_record() reads back exactly, but for `requests`.
std::string to_record(const BatchReport& batch);
/// Throws: ConfigError for what to_record() cannot have made.
BatchReport from_record(const std::string& record);

}  // namespace lancet
