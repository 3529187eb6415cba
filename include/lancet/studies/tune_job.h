// `lancet tune`: finds an editor's options for a model by successive halving on separate requests. Source: Jamieson and
// Talwalkar, arXiv 1502.07943: every round runs the remaining choices on more requests and keeps the better ones.
// Finished trials are kept until the whole study is done; after that only statistics in the cache remain.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lancet/job_setup/presets.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/studies/finished_runs.h"

namespace lancet {

/// The score of a choice of values on the first `requests` requests.
struct TrialScore {
  int64_t requests = 0;
  double objective = 0;                            ///< score in [0, 1]
  std::vector<std::pair<std::string, double>> of;  ///< the metrics; the score is their harmonic mean
};

struct Trial {
  /// Values by dotted key of editor; empty: the job's own values.
  std::vector<std::pair<std::string, ConfigTree>> choice;
  std::vector<TrialScore> scores;  ///< scores of the rounds that it took part in
  std::string failure;             ///< why it was dropped without a score; empty: it has a score
};

struct TuneReport {
  std::string model;  ///< name of the model's folder
  ModelFacts facts;
  std::vector<TrialScore> before;  ///< scores of the unedited model, for each round
  std::vector<Trial> trials;       ///< the best first
  ConfigTree editor;               ///< the best options, with every key
  std::vector<std::string> objective;
};

/// Runs the study. Trials that `kept` has from an earlier call with the same job are not run again. Throws: ConfigError
/// (also when the requests have no prompts for an objective, or the search contains a value that the method refuses),
/// CheckpointError, TokenizerError, PlacementError; NumericError when every trial failed.
TuneReport run_tune_job(const ResolvedJob& job, KeptRuns kept = {});

/// Returns a preset file with the scores of all trials.
std::string to_preset(const TuneReport& report);

/// Returns an SVG document: scores over the number of requests, with one line per trial.
std::string to_svg(const TuneReport& report);

/// Returns "values.lr 0.1, layers [0, 1]"; "as the job says" for an empty choice.
std::string choice_text(const Trial& trial);

}  // namespace lancet
