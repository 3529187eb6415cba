// What one batch of a stream did and measured, also as a record that an interrupted run leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/eval/metrics.h"

namespace lancet {

/// What one batch did and measured.
struct BatchReport {
  std::vector<int64_t> requests;       ///< indices into the job's
  double seconds = 0;                  ///< seconds of editing alone
  EditOutcome outcome;                 ///< outcomes by place in the batch
  std::optional<Tallies> right_after;  ///< its requests, right after it; nullopt: not measured
  std::optional<Tallies> first_batch;  ///< the first batch's, at the same time
  std::optional<double> text_kl;       ///< mean KL on the held-out text at that time; nullopt: not measured
  std::vector<std::pair<std::string, double>>
      growth;  ///< ||W - W0||_F / ||W0||_F of each weight edited so far, by name
};

/// The outcomes of all batches, by the job's requests.
EditOutcome merged_outcome(const std::vector<BatchReport>& batches, size_t n_requests);

/// The batch without some of its requests; `kept`: places of those that stay, ascending. What was measured of all of
/// them together is not measured.
BatchReport without_requests(const BatchReport& batch, const std::vector<int64_t>& kept);

/// Writes the batch as text that from_record() reads back exactly, but for `requests`.
std::string to_record(const BatchReport& batch);
/// Throws: ConfigError for what to_record() cannot have made of a batch of `n_requests`.
BatchReport from_record(const std::string& record, size_t n_requests);

}  // namespace lancet
