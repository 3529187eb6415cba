// What one batch of a stream did and measured, also as a record that an interrupted run leaves.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/editing/editor.h"
#include "lancet/eval/evaluate.h"
#include "lancet/eval/metrics.h"
#include "lancet/journal/journal.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/memory.h"

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

// What a stage of a job cost.

struct StageCost {
  std::string stage;
  double seconds = 0;
  PeakBytes peaks;  ///< most memory by device
};

double total_seconds(const std::vector<StageCost>& stages);
PeakBytes overall_peaks(const std::vector<StageCost>& stages);

/// Collective. Every rank went through the same stages: a stage's peaks become the most that a rank had.
void raise_to_ranks(std::vector<StageCost>& stages, Communicator& communicator);

// How well edits hold that stood before others were made, or at any later time.

struct StandingMeasure {
  std::vector<EditRequest> requests = {};
  Evaluation now = {};  ///< evaluation of them, on the weights with all edits
};

/// Returns for the journal, by id, what was measured `before` an edit, and how it holds now.
std::map<std::string, MeasuredEdit> measured_again(const StandingMeasure& measure, const Journal& journal);

/// "2 of 3 earlier edits still hold (the model says the target)"; empty: none was measured.
std::string standing_text(const StandingMeasure& measure);

}  // namespace lancet
