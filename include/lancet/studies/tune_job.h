// `lancet tune`: an editor's options for a model, found on requests of their own by successive halving. Source:
// Jamieson and Talwalkar, arXiv 1502.07943: every round runs the choices that are left on more requests and keeps the
// better ones. A trial that ends is kept until the whole is done; then nothing is left behind but statistics in the
// cache.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lancet/job/job_config.h"
#include "lancet/job_setup/presets.h"
#include "lancet/studies/finished_runs.h"

namespace lancet {

/// A choice of values on the first requests.
struct TrialScore {
  int64_t requests = 0;
  double objective = 0;                            ///< score in [0, 1]
  std::vector<std::pair<std::string, double>> of;  ///< the metrics that it is the harmonic mean of
};

struct Trial {
  std::vector<std::pair<std::string, ConfigTree>> choice;  ///< dotted keys of editor; empty: as the job says
  std::vector<TrialScore> scores;                          ///< scores of each round that it took part in
  std::string failure;                                     ///< why it lost with no score; empty: it has one
};

struct TuneReport {
  std::string model;  ///< its folder's name
  ModelFacts facts;
  std::vector<TrialScore> before;  ///< scores of the unedited model, for each round
  std::vector<Trial> trials;       ///< the best first
  ConfigTree editor;               ///< the best, every key
  std::vector<std::string> objective;
};

/// What `kept` has of an earlier call with the same job is not run again. Throws: ConfigError (also when an objective
/// has no prompts among the requests, or the search a value that the method refuses), CheckpointError, TokenizerError,
/// PlacementError; NumericError when every trial failed.
TuneReport run_tune_job(const JobConfig& job, KeptRuns kept = {});

/// A preset file, with all trials' scores.
std::string to_preset(const TuneReport& report);

/// Scores over requests, a line for each trial: one SVG document.
std::string to_svg(const TuneReport& report);

/// "values.lr 0.1, layers [0, 1]"; "as the job says" for no choice.
std::string choice_text(const Trial& trial);

}  // namespace lancet
