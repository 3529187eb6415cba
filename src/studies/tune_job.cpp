#include "lancet/studies/tune_job.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/export/output_form.h"
#include "lancet/outcome/edit_verdicts.h"
#include "lancet/outcome/report_json.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/job_statistics.h"
#include "lancet/plan/model_session.h"
#include "lancet/runtime/memory.h"
#include "tune_trials.h"

namespace lancet {
namespace {

/// Returns the job of a trial: the job to tune, with the trial's editor.
ResolvedJob job_of(const JobConfig& tuned, const Trial& trial) {
  JobConfig job;
  job.model = tuned.model;
  job.statistics = tuned.statistics;
  job.run = tuned.run;
  return with_editor(std::move(job), editor_of(trial, tuned.editor_options), cat("tune.search: ", choice_text(trial)));
}

std::vector<EditRequest> first(const std::vector<EditRequest>& requests, int64_t count) {
  return {requests.begin(), requests.begin() + count};
}

/// Returns the first half of a job's own requests, so that the others remain to measure the result.
std::vector<EditRequest> first_half(const std::vector<EditRequest>& requests) {
  const auto count = static_cast<int64_t>(requests.size() + 1) / 2;
  log_line(cat("tune  no tune.requests: options are chosen on the first ", count, " of the job's ", requests.size(),
               " requests; judge them on others"));
  return first(requests, count);
}

/// Returns the objective if the job names none: the metrics that were measured, and always efficacy.
std::vector<std::string> measured_objective(const std::vector<std::string>& names, const Tallies& totals) {
  std::vector<std::string> measured;
  for (const std::string& name : names)
    if (const auto total = totals.find(name); total != totals.end() && total->second.mean()) measured.push_back(name);
  if (std::find(measured.begin(), measured.end(), TuneSpec::kDefaultObjective[0]) == measured.end())
    measured.insert(measured.begin(), kSuccessMetric);
  return measured;
}

/// Converts the metrics of a score to a text that keeps every bit, and back.
std::string to_text(const TrialScore& score) {
  Json metrics = Json::array();
  for (const auto& [name, share] : score.of) metrics.push_back({name, share});
  return metrics.dump();
}

std::vector<std::pair<std::string, double>> from_text(const std::string& text) {
  try {
    return parse_ordered_json(text).get<std::vector<std::pair<std::string, double>>>();
  } catch (const JsonProblem& problem) {
    throw CheckpointError(cat("a kept trial: ", problem.what()));
  } catch (const Json::exception& error) {
    throw CheckpointError(cat("a kept trial: ", error.what()));
  }
}

/// A trial and what belongs to it.
struct Candidate {
  Trial trial;
  std::unique_ptr<ResolvedJob> job;  ///< allocated separately, because the statistics refer to it
};

class TuneRun {
 public:
  TuneRun(const ResolvedJob& job, KeptRuns kept)
      : job_(job), options_(*job.tune), objective_(options_.objective), finished_(std::move(kept)) {}

  TuneReport run() {
    open();
    CausalLM model = load_model(*files_, job_.run, work_, kept_.get());
    const MemoryWatch memory_watch(devices_with_memory(model.placement(), files_->config.n_layers));
    content_hash_ = files_->checkpoint.content_hash();
    computed_on_ = cat(precision_text(model), ", ", model.placement().description());
    make_moments(model);
    size_t left = candidates_.size();
    for (size_t round = 0; round < rounds_.size(); ++round) {
      if (round > 0) left = keep_better(left);
      run_round(model, round, left);
    }
    return report();
  }

 private:
  /// Does everything that can fail before any weight is read, such as parsing the options of every trial.
  void open() {
    files_.emplace(open_model(job_.model, job_.ignore_config_keys));
    RequestFile file = load_requests(options_.requests);
    warn_of_skipped(file.skipped);
    warn_of_texts(file.requests);
    check_lengths(*files_, file.requests);
    requests_ = options_.takes_half ? first_half(file.requests) : std::move(file.requests);
    const ConfigTree& editor = job_.editor_options;
    const ModelConfig& config = files_->config;
    const std::vector<SearchAxis> axes = options_.search.empty()
                                             ? default_search(editor, job_.editor->targets(config), config.n_layers)
                                             : options_.search;
    for (Trial& trial : draw_trials(editor, axes, options_.trials, job_.run.seed)) {
      ResolvedJob job = job_of(job_, trial);
      check_requests(*files_, requests_, *job.editor);
      candidates_.push_back({std::move(trial), std::make_unique<ResolvedJob>(std::move(job))});
    }
    if (candidates_.size() < 2)
      throw ConfigError("tune.search: there is nothing to choose from: name keys of editor with several values");
    rounds_ =
        plan_rounds(static_cast<int64_t>(candidates_.size()), static_cast<int64_t>(requests_.size()), options_.halve);
    measured_ = job_.evaluation;
    measured_.side_effects = {};
    measured_.protocols.clear();
    for (const std::string& name : options_.objective) measured_.protocols.emplace_back(find_protocol_of(name)->name);
    std::sort(measured_.protocols.begin(), measured_.protocols.end());
    measured_.protocols.erase(std::unique(measured_.protocols.begin(), measured_.protocols.end()),
                              measured_.protocols.end());
    work_ = work();
  }

  /// Returns work that is enough for each trial, and for the statistics of all trials.
  Workload work() const {
    const EvaluationPlan plan(*files_->tokenizer, requests_, measured_, files_->config.max_positions);
    const WorkTexts texts{files_->tokenizer.get(), requests_, plan.size()};
    std::vector<std::string> assumptions;  // `lancet plan` shows them
    Workload all = edit_work(*candidates_[0].job, files_->config, texts, assumptions);
    for (const Candidate& candidate : candidates_)
      all = united(all, edit_work(*candidate.job, files_->config, texts, assumptions));
    all.statistics_layers = all_layers();
    return all;
  }

  /// Returns the layers of all trials that need statistics, ascending.
  std::vector<int64_t> all_layers() const {
    std::set<int64_t> layers;
    for (const Candidate& candidate : candidates_)
      if (candidate.job->needs.statistics)
        for (const int64_t layer : target_layers(*candidate.job->editor, files_->config)) layers.insert(layer);
    return {layers.begin(), layers.end()};
  }

  /// Makes one pass over text for the layers of all trials. What fails here (such as an empty null space in some layer)
  /// fails again in the trials that need it.
  void make_moments(const CausalLM& model) {
    const std::vector<int64_t> layers = all_layers();
    if (layers.empty() || !job_.statistics->takes_text()) return;
    try {
      JobStatistics statistics(*candidates_[0].job, *files_, ranks_, layers);
      corpus_ = statistics.corpus();
      statistics.prepare(model, content_hash_, ranks_);
    } catch (const NumericError& error) {
      log_warning(cat("tune: ", error.what()));
    }
  }

  void run_round(CausalLM& model, size_t round, size_t left) {
    const std::vector<EditRequest> requests = first(requests_, rounds_[round]);
    const EvaluationPlan plan(*files_->tokenizer, requests, measured_, files_->config.max_positions);
    const Evaluation before = plan.run(model, "evaluate before", ranks_);
    if (round == 0 && options_.objective_is_open) choose_objective(before.totals);
    before_.push_back(score(before));
    RunsLeft runs(static_cast<int64_t>(left));
    for (size_t i = 0; i < left; ++i) {
      Trial& trial = candidates_[i].trial;
      if (!trial.failure.empty()) {
        runs.skip_run();
        continue;
      }
      const std::string key = key_of(*candidates_[i].job, requests);
      const std::string name = cat("round ", round + 1, ", ", choice_text(trial));
      const std::optional<TrialScore> kept = kept_score(key, name, requests.size());
      if (kept) {
        runs.skip_run();
        trial.scores.push_back(*kept);
      } else {
        runs.begin_run();
        try {
          trial.scores.push_back(run_trial(model, *candidates_[i].job, requests, plan));
          finished_.keep(key, to_text(trial.scores.back()), name);
        } catch (const NumericError& error) {
          trial.failure = error.what();
        }
        runs.end_run();
      }
      log_line(cat("tune  round ", round + 1, "/", rounds_.size(), ", ", counted(requests.size(), "request"),
                   ", trial ", i + 1, "/", left, ": ",
                   trial.failure.empty() ? percent(trial.scores.back().objective) : "failed: " + trial.failure, "  ",
                   choice_text(trial), kept ? " (of an interrupted run)" : "", "; ", runs.text()));
    }
  }

  /// Returns the key of one trial in one round.
  std::string key_of(const JobConfig& trial, std::span<const EditRequest> requests) const {
    ConfigTree job = job_.resolved;
    job.set("editor", trial.editor_options);
    StudySetting setting{.weights = content_hash_,
                         .config_json = files_->checkpoint.config_text(),
                         .computed_on = computed_on_,
                         .questions = objective_};
    return run_key(setting, job, requests);
  }

  /// Returns the score that an earlier call measured for the trial; nullopt if there is none, or if it lacks a metric.
  std::optional<TrialScore> kept_score(const std::string& key, const std::string& name, size_t n_requests) const {
    const std::optional<std::string> text = finished_.find(key, name);
    if (!text) return std::nullopt;
    TrialScore score{static_cast<int64_t>(n_requests), 0, from_text(*text)};
    score.objective = harmonic_mean(score.of);
    return score;
  }

  /// Runs one trial. Afterwards the model has its earlier weights again, also after an error.
  TrialScore run_trial(CausalLM& model, const ResolvedJob& job, const std::vector<EditRequest>& requests,
                       const EvaluationPlan& plan) {
    const LayerStatistics algebra = algebra_of(model, job);
    WeightTransaction transaction(model, [&](WeightId id) { return stored_weight(*files_, model, id); });
    const EditContext context(model, *files_->tokenizer, contexts_of(model, job), algebra,
                              {ranks_, nullptr, job.run.step_launch, job.run.seed});
    EditorState state = job.editor->make_state();
    job.editor->edit(context, requests, state, transaction);
    job.editor->finish(context, transaction);
    transaction.round_as_written();
    return score(plan.run(model, "evaluate", ranks_));
  }

  /// Returns what the moments of entities depend on: their weight, and the message around the names.
  static std::pair<double, std::string> entities_of(const ResolvedJob& job) {
    const double weight = job.needs.entity_weight;
    return {weight, weight > 0 && job.editor->contexts() != nullptr ? job.editor->contexts()->chat : ""};
  }

  /// Prepares statistics. Trials with the same layers, null space and entities share them.
  LayerStatistics algebra_of(const CausalLM& model, const ResolvedJob& job) {
    if (!job.needs.statistics) return {};
    std::unique_ptr<JobStatistics>& statistics = statistics_[{
        job.needs.null_space, job.needs.curvature, entities_of(job), target_layers(*job.editor, files_->config)}];
    if (!statistics) {
      auto made = std::make_unique<JobStatistics>(job, *files_, ranks_, corpus_);
      made->keep_in(kept_);
      made->prepare(model, content_hash_, ranks_);
      statistics = std::move(made);
    }
    return statistics->algebra();
  }

  /// Returns the contexts. Generated ones depend only on the unedited model, the seed and their options.
  std::vector<std::string> contexts_of(const CausalLM& model, const ResolvedJob& job) {
    const ContextOptions* options = job.editor->contexts();
    if (options == nullptr) return {};
    if (!options->templates.empty()) return options->templates;
    std::vector<std::string>& made =
        contexts_[{options->generate, options->length, static_cast<int>(options->opening), options->chat}];
    if (made.empty()) made = make_contexts(model, *files_, *options, job_.run.seed, ranks_);
    return made;
  }

  void choose_objective(const Tallies& totals) {
    objective_ = measured_objective(options_.objective, totals);
    if (objective_ != options_.objective)
      log_line(cat("tune  objective: ", join(objective_), "; the requests have no prompts for other metrics"));
  }

  TrialScore score(const Evaluation& evaluation) const {
    TrialScore score{static_cast<int64_t>(evaluation.requests.size()), 0, {}};
    for (const std::string& name : objective_) {
      const auto total = evaluation.totals.find(name);
      const std::optional<double> share = total == evaluation.totals.end() ? std::nullopt : total->second.mean();
      if (!share)
        throw ConfigError(cat(
            "tune.objective: ", name, ": none of the first ", counted(static_cast<size_t>(score.requests), "request"),
            " has a prompt to measure it by (target_true, paraphrases, neighborhood): add them, or name other "
            "metrics"));
      score.of.emplace_back(name, *share);
    }
    score.objective = harmonic_mean(score.of);
    return score;
  }

  /// Sorts the better trials first. Returns how many go to the next round.
  size_t keep_better(size_t left) {
    std::stable_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(left),
                     [](const Candidate& a, const Candidate& b) { return is_better(a.trial, b.trial); });
    const auto halve = static_cast<size_t>(options_.halve);
    return (left + halve - 1) / halve;
  }

  TuneReport report() {
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return is_better(a.trial, b.trial); });
    if (!candidates_[0].trial.failure.empty())
      throw NumericError(cat("tune: every trial failed, the last one: ", candidates_[0].trial.failure));
    TuneReport report;
    report.model = files_->checkpoint.folder().filename().string();
    report.facts = facts_of(files_->config);
    report.before = before_;
    report.objective = objective_;
    report.editor = candidates_[0].job->editor_options;
    for (Candidate& candidate : candidates_) report.trials.push_back(std::move(candidate.trial));
    return report;
  }

  const ResolvedJob& job_;
  const TuneOptions& options_;
  std::vector<std::string> objective_;
  SingleProcess ranks_;
  std::optional<ModelFiles> files_;
  std::vector<EditRequest> requests_;
  std::vector<Candidate> candidates_;  ///< after a round, the better ones are first
  std::vector<int64_t> rounds_;        ///< number of requests in each round
  EvaluationOptions measured_;
  Workload work_;
  FinishedRuns finished_;
  std::string content_hash_;                                               ///< content hash of the checkpoint
  std::string computed_on_;                                                ///< types and devices
  std::shared_ptr<const CorpusTokens> corpus_;                             ///< read once for all trials
  std::shared_ptr<KeptMatrices> kept_ = std::make_shared<KeptMatrices>();  ///< matrices of all trials' solves
  std::map<std::tuple<std::optional<NullSpaceRule>, bool, std::pair<double, std::string>, std::vector<int64_t>>,
           std::unique_ptr<JobStatistics>>
      statistics_;
  std::map<std::tuple<int64_t, int64_t, int, std::string>, std::vector<std::string>> contexts_;
  std::vector<TrialScore> before_;
};

}  // namespace

TuneReport run_tune_job(const ResolvedJob& job, KeptRuns kept) { return TuneRun(job, std::move(kept)).run(); }

std::string choice_text(const Trial& trial) {
  if (trial.choice.empty()) return "as the job says";
  std::vector<std::string> parts;
  for (const auto& [key, value] : trial.choice) parts.push_back(cat(key, " ", to_line(value)));
  return join(parts);
}

}  // namespace lancet
