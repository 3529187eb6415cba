// A rehearsal is the real job on less data: the first requests, a corpus of a few thousand tokens if the cache lacks
// the statistics, and folders that are removed afterwards. So every stage, also the export, runs the job's own code.
#include "lancet/studies/rehearsal.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lancet/core/strings.h"
#include "lancet/io/output_folder.h"
#include "lancet/models/batching.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/job_statistics.h"
#include "lancet/runtime/communicator.h"
#include "lancet/statistics/covariance.h"
#include "rehearsed_editor.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kEdited = 2;
/// Moments over few tokens are hardly positive definite. With this ridge they can be factored, at the same cost as the
/// job's.
constexpr double kLeastRidge = 1e-3;

/// What is known about the whole job without reading weights.
struct WholeJob {
  std::vector<EditRequest> requests;
  std::vector<EditRequest> first_batch;
  int64_t n_batches = 1;
  int64_t history_keys = 0;      ///< keys of earlier batches in the solves of the last batch
  int64_t measured_between = 0;  ///< number of requests measured between batches
  int64_t n_evaluated = 0;
  int64_t text_tokens = 0;  ///< number of tokens in the corpus of the statistics
  int64_t rehearsed_tokens = 0;
  int64_t key_bytes = 0;  ///< bytes of the keys that a solve has of one request at a layer
  bool needs_statistics = false;
  bool is_cached = false;
};

/// Returns how many of the first requests fill one forward pass with their measured prompts. The evaluation then runs
/// batches as large as the job's.
int64_t count_for_a_pass(const EvaluationPlan& plan, int64_t n_requests) {
  const int64_t n_scored = plan.size().scoring.tokens;
  int64_t tokens = 0, count = 0;
  for (; count < n_requests; ++count) {
    if (count >= kEdited && (tokens >= kForwardTokens || n_scored == 0)) break;
    tokens += plan.scored_tokens(static_cast<size_t>(count));
  }
  return count;
}

/// Makes every check that the whole job makes before it reads weights.
WholeJob look_at(const ResolvedJob& job, const Communicator& communicator) {
  if (communicator.is_root()) check_output(job);
  const ModelFiles files = open_model(job.model, job.ignore_config_keys);
  WholeJob whole;
  RequestFile file = load_requests(job.requests);
  if (communicator.is_root()) warn_of_skipped(file.skipped);
  whole.requests = std::move(file.requests);
  check_lengths(files, whole.requests);
  check_requests(files, whole.requests, *job.editor);
  const EvaluationPlan plan(*files.tokenizer, whole.requests, job.evaluation, files.config.max_positions);
  const auto n_requests = static_cast<int64_t>(whole.requests.size());
  whole.n_batches = job.schedule.n_batches(n_requests);
  whole.history_keys = history_keys(job, n_requests);
  whole.measured_between = job.schedule.measured_between(n_requests);
  const std::vector<std::vector<int64_t>> batches = plan_schedule(job.schedule, n_requests, job.run.seed);
  for (const int64_t index : batches.front()) whole.first_batch.push_back(whole.requests[static_cast<size_t>(index)]);
  whole.n_evaluated = count_for_a_pass(plan, n_requests);
  whole.key_bytes = 8 * files.config.largest_keys().size();
  whole.needs_statistics = job.needs.statistics;
  if (!whole.needs_statistics || !communicator.is_root()) return whole;
  const JobStatistics statistics(job, files, communicator);
  whole.is_cached = statistics.is_cached(files.checkpoint);
  whole.text_tokens = statistics.text_tokens();
  const at::ScalarType dtype = to_scalar_type(job.run.dtype.value_or(files.config.dtype));
  // a whole chunk, in addition to the number of a key's dimensions
  whole.rehearsed_tokens =
      std::min(whole.text_tokens, files.config.least_tokens() + statistics_chunk_tokens(files.config, dtype));
  return whole;
}

/// A hidden folder near `place`, where the job would make its own. It is removed with this object.
class Scratch {
 public:
  explicit Scratch(const fs::path& place)
      : folder_(existing(named(place).parent_path()) / (named(place).filename().string() + ".rehearsal"),
                IfExists::kReplace, kEditOutput) {}
  const fs::path& path() const { return folder_.staging(); }

 private:
  /// Returns an absolute path without a slash at the end.
  static fs::path named(const fs::path& place) {
    const fs::path absolute = fs::absolute(place).lexically_normal();
    return absolute.has_filename() ? absolute : absolute.parent_path();
  }
  static fs::path existing(fs::path folder) {
    std::error_code error;
    while (!fs::is_directory(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
    return folder;
  }

  OutputFolder folder_;
};

/// Adds the stages inside the editor's stage.
void add_edit_stages(const EditMeasurements& measured, const WholeJob& whole, std::vector<RehearsedStage>& stages) {
  const size_t n_requests = whole.requests.size();
  const auto n = static_cast<double>(n_requests), n_batches = static_cast<double>(whole.n_batches);
  const bool is_all = static_cast<int64_t>(n_requests) <= measured.edited;
  const auto by_requests = [&](const StageCost& cost) {
    const double share = n / static_cast<double>(measured.edited);
    stages.push_back(
        {cost, share * cost.seconds, cat(counted(n_requests, "request"), " as the first ", measured.edited)});
  };
  if (measured.values.stage.empty()) {
    // the method has no values
  } else if (is_all) {
    stages.push_back({measured.values, measured.values.seconds, ""});
  } else if (measured.one_by_one) {
    by_requests(measured.values);
  } else {
    const double batch_s = measured.together_begin_s + measured.mean_steps * measured.together_step_s;
    const double n_batches_of_values =
        static_cast<double>(measured.n_values) / static_cast<double>(measured.n_together);
    stages.push_back({measured.values, n_batches_of_values * batch_s,
                      cat(counted(n_requests, "request"), ", ", measured.n_together, " at a time, in the ",
                          std::lround(measured.mean_steps), " steps that the first ", measured.edited, " took")});
  }
  if (measured.n_together > 0) stages.push_back({measured.together, 0, "a part of values"});
  if (is_all) {
    stages.push_back({measured.weights, measured.weights.seconds, ""});
  } else if (measured.keyed == 0) {
    by_requests(measured.weights);
  } else {
    const double keys_s = n / static_cast<double>(measured.keyed) * measured.keys.seconds;
    const std::string often = whole.n_batches > 1 ? cat(whole.n_batches, " times ") : "";
    stages.push_back({measured.weights,
                      n_batches * measured.weights.seconds + static_cast<double>(measured.layers) * keys_s,
                      cat(often, "as measured, and the keys of ", counted(n_requests, "request"), " in ",
                          counted(static_cast<size_t>(measured.layers), "layer"))});
  }
  if (measured.keyed > 0) stages.push_back({measured.keys, 0, "a part of weights"});
  if (!measured.finish.stage.empty()) stages.push_back({measured.finish, measured.finish.seconds, ""});
}

std::vector<RehearsedStage> estimate(const WholeJob& whole, const EditReport& run, const EditMeasurements& measured) {
  std::vector<RehearsedStage> stages;
  for (const StageCost& cost : run.stages) {
    RehearsedStage stage{cost, cost.seconds, ""};
    if (cost.stage == "edit") {
      add_edit_stages(measured, whole, stages);
      continue;
    }
    if (cost.stage.starts_with("evaluate")) {
      stage.cost.stage += cat(", ", counted(static_cast<size_t>(whole.n_evaluated), "request"));
      stage.estimate_s *= static_cast<double>(whole.requests.size()) / static_cast<double>(whole.n_evaluated);
      stage.how = counted(whole.requests.size(), "request");
    } else if (cost.stage == "statistics" && !whole.is_cached && whole.text_tokens > 0) {
      const double tokens = static_cast<double>(whole.text_tokens),
                   rehearsed = static_cast<double>(whole.rehearsed_tokens);
      stage.cost.stage += cat(", ", whole.rehearsed_tokens, " tokens");
      stage.estimate_s += (tokens / rehearsed - 1) * run.statistics.collect_seconds;
      stage.how = cat(whole.text_tokens, " tokens; the factors as measured");
    }
    stages.push_back(std::move(stage));
    if (cost.stage == "evaluate before" && whole.measured_between > 0)
      stages.push_back(
          {{"evaluate batches", 0, {}},
           cost.seconds * static_cast<double>(whole.measured_between) / static_cast<double>(whole.n_evaluated),
           cat(counted(static_cast<size_t>(whole.measured_between), "request"), " between batches, as before")});
  }
  return stages;
}

std::vector<std::string> limits_of(const WholeJob& whole, const JobConfig& job, const EditMeasurements& measured) {
  std::vector<std::string> limits;
  const auto n = static_cast<int64_t>(whole.first_batch.size()) + whole.history_keys;
  if (n > measured.edited && measured.keyed > 0)
    limits.push_back(cat("solves ran for ", measured.edited, " of ", n, " requests: the keys of all take ",
                         bytes_text(static_cast<uint64_t>(n * whole.key_bytes)),
                         " more on the device that solves, their products about as much again"));
  if (whole.needs_statistics && !whole.is_cached)
    limits.emplace_back("statistics are not those of the job: whether its covariances are definite shows only there");
  if (measured.halvings > 0)
    limits.push_back(cat("values: memory did not suffice for ", measured.n_together,
                         " requests together; the job will ",
                         "halve its batches too: a smaller editor.values.batch saves the attempts"));
  if (whole.n_batches > 1)
    limits.push_back(cat("one batch ran: what the job saves after each of its ", whole.n_batches, " is not counted"));
  if (!job.accept.empty()) limits.emplace_back("accept: is not judged");
  return limits;
}

/// Turns the whole job into the small one.
void make_small(JobConfig& job, const WholeJob& whole) {
  job.requests = {};
  job.requests.inline_requests = {whole.requests.begin(), whole.requests.begin() + whole.n_evaluated};
  job.schedule = {};
  job.accept.clear();
  job.output->if_exists = IfExists::kError;
  if (!whole.needs_statistics || whole.is_cached) return;
  StatisticsOptions& statistics = *job.statistics;
  if (!statistics.takes_text()) return;  // the matrices are the same as in the job
  statistics.tokens = whole.rehearsed_tokens;
  statistics.ridge = std::max(statistics.ridge, kLeastRidge);
}

/// Collective. Sends the ranks what only root knows about the job.
void share_roots_part(WholeJob& whole, Communicator& communicator) {
  const std::vector<int64_t> numbers =
      broadcast_numbers(communicator, {whole.is_cached, whole.text_tokens, whole.rehearsed_tokens});
  whole.is_cached = numbers[0] != 0;
  whole.text_tokens = numbers[1];
  whole.rehearsed_tokens = numbers[2];
}

/// Collective. Returns root's folder.
fs::path root_path(const std::optional<Scratch>& scratch, Communicator& communicator) {
  return communicator.broadcast(scratch ? scratch->path().string() : "");
}

}  // namespace

double RehearsalReport::estimate_s() const {
  double total = 0;
  for (const RehearsedStage& stage : stages) total += stage.estimate_s;
  return total;
}

RehearsalReport rehearse_edit_job(ResolvedJob job, Communicator& communicator) {
  WholeJob whole;
  EditMeasurements measured;
  std::optional<Scratch> beside_output, beside_cache;
  communicator.run_collectively("rehearsal", [&] {
    whole = look_at(job, communicator);
    if (!communicator.is_root()) return;
    beside_output.emplace(job.output->place.folder);
    if (whole.needs_statistics && !whole.is_cached) beside_cache.emplace(job.statistics->cache);
  });
  share_roots_part(whole, communicator);
  RehearsalReport report;
  const std::vector<std::pair<std::string, double>> accept = job.accept;
  make_small(job, whole);
  job.output->place.folder = root_path(beside_output, communicator) / "out";
  if (whole.needs_statistics && !whole.is_cached) job.statistics->cache = root_path(beside_cache, communicator);
  job.editor = std::make_shared<const RehearsedEditor>(job.editor, whole.first_batch, kEdited, measured);
  const EditReport run = run_edit_job(job, communicator);
  job.accept = accept;
  report.devices = run.devices;
  report.model_dtype = run.model_dtype;
  report.requests = static_cast<int64_t>(whole.requests.size());
  report.edited = measured.edited;
  report.evaluated = whole.n_evaluated;
  report.together = measured.n_together;
  report.stages = estimate(whole, run, measured);
  report.limits = limits_of(whole, job, measured);
  return report;
}

}  // namespace lancet
