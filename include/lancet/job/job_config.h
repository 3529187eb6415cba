// A job file: what to do (model, requests, editor, schedule, statistics, evaluate, accept, output) and how (run).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lancet/core/config_section.h"
#include "lancet/core/config_tree.h"
#include "lancet/core/dtype.h"
#include "lancet/core/run_kinds.h"
#include "lancet/io/model_file_output.h"
#include "lancet/io/output_folder.h"
#include "lancet/job/job_tables.h"
#include "lancet/job/schedule.h"
#include "lancet/requests/request.h"
#include "lancet/spec/evaluation_options.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/statistics_options.h"

namespace lancet {

/// What a command does with the job: sections that it does not need may be absent (they are still checked when
/// present).
enum class JobPurpose { kEdit, kCompare, kTune, kEvaluate, kStatistics, kSession, kErase };

/// What is made even when a model's layers are split over devices.
enum class Balance {
  kMemory,  ///< the share of its budget that each device uses
  kWork     ///< the time that each device works
};

/// How the work is run; no option here changes what is computed beyond rounding, but for `quantise_base`, and `seed`
/// (generated contexts, `corpus: self`).
struct RunOptions {
  std::vector<std::string> devices{std::string(RunSpec::kDevices.alone)};  ///< names for find_devices()
  Balance balance = Balance::kMemory;
  std::optional<DType> dtype;  ///< type of weights and activations; nullopt (auto): the checkpoint's
  std::string quantise_base;   ///< quantiser of matrices that are not edited; empty: as the checkpoint has them
  SolveOn solve_on = SolveOn::kAuto;
  uint64_t seed = *RunSpec::kSeed.fallback;
  int64_t threads = *RunSpec::kThreads.fallback;  ///< CPU threads; 0: all
  /// Seconds without any progress after which one of several processes ends the job.
  int64_t timeout_s = *RunSpec::kTimeout.fallback;
  LaunchMode step_launch = RunSpec::kCudaGraphs.fallback ? LaunchMode::kGraph : LaunchMode::kEachOperation;
  int64_t ranks_per_model = *RunSpec::kRanksPerModel.fallback;
  HostShare on_host;  ///< this process's share of the host; not a key of the job
};

struct RequestSource {
  std::filesystem::path path;  ///< empty: inline
  RequestFileOptions options;  ///< options of the file
  std::vector<EditRequest> inline_requests;
};

enum class OutputFormat { kAuto, kCheckpoint, kAdapter, kMixed, kQuantised, kGguf };

/// How edited weights are brought back into a quantised format.
enum class OutputRounding { kEdits, kStatistics, kNearest };

/// Types of edited matrices in a GGUF file.
enum class GgufOutputType { kAuto, kQ8_0, kF16, kBf16, kF32, kOwn };

struct OutputOptions {
  OutputPlace place = {};
  IfExists if_exists = IfExists::kError;
  bool keeps_state = OutputSpec::kState.fallback;  ///< what `continue_from` needs is written too
  OutputFormat format = OutputFormat::kAuto;
  OutputRounding rounding = OutputRounding::kEdits;                    ///< rounding of kQuantised
  double covariance_weight = *OutputSpec::kCovarianceWeight.fallback;  ///< weight of kEdits
  GgufOutputType gguf_type = GgufOutputType::kAuto;
};

/// A key of `editor:` and the values to try.
struct SearchAxis {
  std::string key;  ///< dotted: "values.lr"
  std::vector<ConfigTree> values;
};

/// `tune:` of a job.
struct TuneOptions {
  RequestSource requests;
  bool takes_half = false;                       ///< the requests are the job's own, whose first half is taken
  std::vector<SearchAxis> search;                ///< empty: by the method
  int64_t trials = *TuneSpec::kTrials.fallback;  ///< choices of values that are tried, the job's own among them
  /// A round keeps a share 1 / halve of them, on so many times the requests.
  int64_t halve = *TuneSpec::kHalve.fallback;
  std::vector<std::string> objective;  ///< harmonic mean of these
  bool objective_is_open = false;      ///< nobody named it: what the requests have no prompts for is left out
};

/// `erase:` of a job.
struct EraseOptions {
  std::optional<std::string> target;  ///< neutral one; nullopt: the model's own answer about made-up subjects
  bool own_targets = EraseSpec::kOwnTargets.fallback;  ///< a request's own target comes before the neutral one
  std::vector<std::string> prompts{
      std::string(kPlaceMark)};  ///< templates with the request's prompt as {}, all of which are edited
  int64_t samples = *EraseSpec::kSamples.fallback;
  double temperature = *EraseSpec::kTemperature.fallback;
  int64_t tokens = *EraseSpec::kTokens.fallback;  ///< length of a sampled answer

  /// Training on related facts from the erased model.
  struct Relearning {
    RequestSource requests;
    std::vector<int64_t> counts;  ///< ascending, each once
    int64_t steps = *RelearnSpec::kSteps.fallback;
    double lr = *RelearnSpec::kLr.fallback;
  };
  std::optional<Relearning> relearn;  ///< nullopt: not measured
};

/// Means by a metric's name, in [0, 1].
using MetricShares = std::vector<std::pair<std::string, double>>;

/// What was published of a method that is compared.
struct ExpectedFigures {
  std::string label;  ///< a label of `compare:`
  MetricShares means;
};

struct JobConfig {
  std::filesystem::path model;
  std::vector<std::string> ignore_config_keys;
  RequestSource requests;
  ConfigTree editor_options;  ///< the method's, with every default filled in; kNull where none is needed
  std::string method;         ///< empty where none is needed
  std::optional<StatisticsOptions> statistics;
  ScheduleOptions schedule;
  std::optional<std::filesystem::path> continue_from;  ///< the output of an earlier job on the same base model
  EvaluationOptions evaluation;
  MetricShares accept;                        ///< least means
  int64_t seeds = *JobSpec::kSeeds.fallback;  ///< runs of each method that is compared
  std::vector<ExpectedFigures> expected;
  std::optional<OutputOptions> output;
  std::optional<TuneOptions> tune;
  std::optional<EraseOptions> erase;
  RunOptions run;
  ConfigTree resolved;  ///< the job with every default filled in and every path absolute; runs as it is

  bool has_editor() const { return editor_options.kind != ConfigTree::Kind::kNull; }
};

/// A job that was read.
struct ParsedJob {
  JobConfig config = {};
  std::shared_ptr<const Editor> editor =
      {};  ///< what JobTables::read_editor made of `editor:`; null where there is none
};

/// `base`: the folder that relative paths are taken from. `tables`: of this program: job_tables().
/// Throws: ConfigError with every problem of the document.
ParsedJob parse_job(const ConfigTree& tree, const std::filesystem::path& base, const std::string& source,
                    JobPurpose purpose, const JobTables& tables);

/// run: as RunOptions reads it from a section of its own.
RunOptions parse_run_options(ConfigSection section);

/// Requests of the source; `format` is empty for inline ones. Throws: ConfigError.
RequestFile load_requests(const RequestSource& source);

/// Warns of records that were left out, if any: how many, and the first of them.
void warn_of_skipped(const SkippedRecords& skipped);

/// Warns of texts that are probably not meant as they are.
void warn_of_texts(std::span<const EditRequest> requests);

/// The job with the format of its request file in the place of `auto`.
ConfigTree with_format(ConfigTree resolved, const std::string& format);

}  // namespace lancet
