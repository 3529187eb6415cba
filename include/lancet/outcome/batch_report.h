// The report of one batch of a stream. It can be written as a record, from which an interrupted run resumes.
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
  std::vector<int64_t> requests;       ///< indices into the job's requests
  double seconds = 0;                  ///< seconds of editing alone
  EditOutcome outcome;                 ///< outcomes, in the order of the batch
  std::optional<Tallies> right_after;  ///< measure of its requests right after it; nullopt: not measured
  std::optional<Tallies> first_batch;  ///< measure of the first batch's requests at the same time
  std::optional<double> text_kl;       ///< mean KL on the held-out text at that time; nullopt: not measured
  /// ||W - W0||_F / ||W0||_F of each weight edited so far, by name.
  std::vector<std::pair<std::string, double>> growth;
};

/// Merges the outcomes of all batches, in the order of the job's requests.
EditOutcome merged_outcome(const std::vector<BatchReport>& batches, size_t n_requests);

/// Returns the batch without some of its requests. `kept`: the places of those that stay, ascending. Values that were
/// measured on all requests together are dropped.
BatchReport without_requests(const BatchReport& batch, const std::vector<int64_t>& kept);

/// Writes the batch, except `requests`, as text that from_record() reads back exactly.
std::string to_record(const BatchReport& batch);
/// Reads a record. Throws: ConfigError for text that to_record() cannot have written for a batch of `n_requests`.
BatchReport from_record(const std::string& record, size_t n_requests);

// The cost of a stage of a job.

struct StageCost {
  std::string stage;
  double seconds = 0;
  PeakBytes peaks;  ///< peak memory by device
};

double total_seconds(const std::vector<StageCost>& stages);
PeakBytes overall_peaks(const std::vector<StageCost>& stages);

/// Collective. Every rank must have run the same stages. The peaks of each stage become the largest over all ranks.
void raise_to_ranks(std::vector<StageCost>& stages, Communicator& communicator);

// How well earlier edits hold after later ones, or at any later time.

struct StandingMeasure {
  std::vector<EditRequest> requests = {};
  Evaluation now = {};  ///< their evaluation on the weights with all edits
};

/// Returns for the journal, by id, what was measured `before` an edit and how it holds now.
std::map<std::string, MeasuredEdit> measured_again(const StandingMeasure& measure, const Journal& journal);

/// Returns "2 of 3 earlier edits still hold (the model says the target)"; empty: none was measured.
std::string standing_text(const StandingMeasure& measure);

}  // namespace lancet
