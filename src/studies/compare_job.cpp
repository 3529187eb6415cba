#include "lancet/studies/compare_job.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/export/output_form.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/pipeline/earlier_output.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/method_run.h"

namespace lancet {
namespace {

constexpr const char* kCompareFile = "compare.json";
constexpr OutputKind kCompareOutput{"compare"};

/// Converts a run's documents to one text, and back.
std::string kept_text(const RunDocument& run) {
  return nlohmann::json{{"report", run.json}, {"job", run.job_yaml}}.dump();
}

RunDocument from_kept(const std::string& text) {
  try {
    const nlohmann::json json = parse_json_object(text);
    return {.label = {}, .json = json.at("report"), .job_yaml = json.at("job"), .failure = {}};
  } catch (const JsonProblem& problem) {
    throw ConfigError(problem.what());
  } catch (const nlohmann::json::exception& error) {
    throw ConfigError(error.what());
  }
}

/// Returns the figures of a run on one line, in the order of the table.
std::string figures_text(const ComparedRun& run, std::span<const MetricRow> metrics) {
  std::vector<std::string> parts;
  if (run.success.measured > 0)
    parts.push_back(cat(run.success.successes, " of ", run.success.measured, " edits took"));
  for (const MetricRow& row : metrics)
    if (const std::optional<double> mean = mean_of(run.after, row.name))
      parts.push_back(
          cat(row.name, " ",
              row.unit == Unit::kShare || row.unit == Unit::kDifference ? percent(*mean) : short_number(*mean)));
  parts.push_back(cat(short_number(run.seconds_per_edit), " s an edit"));
  return join(parts);
}

class CompareRun {
 public:
  CompareRun(const CompareConfig& config, Communicator& ranks, KeptRuns kept)
      : config_(config),
        ranks_(ranks),
        finished_(std::move(kept)),
        left_(static_cast<int64_t>(config.methods.size()) * config.seeds()) {}

  CompareReport run() {
    ranks_.run_collectively("open", [&] { open(); });
    std::vector<JobFact> facts;
    for (const ComparedMethod& method : config_.methods)
      for (const JobFact& fact : job_facts(method.job(), inputs_->files, inputs_->requests)) facts.push_back(fact);
    check_same(ranks_, facts);
    for (const std::unique_ptr<MethodRun>& run : runs_) run->look_into_cache();
    CausalLM model = load_replica(inputs_->files, config_.first().run, work(), ranks_, inputs_->kept.get());
    const MemoryWatch memory_watch(devices_with_memory(model.placement(), inputs_->files.config.n_layers));
    inputs_->describe(model, ranks_);
    inputs_->before = inputs_->plan.run(model, "evaluate before", ranks_);

    CompareReport report;
    report.before = inputs_->before;
    report.base_hash = inputs_->base_hash;
    report.requests = static_cast<int64_t>(inputs_->requests.size());
    for (size_t i = 0; i < config_.methods.size(); ++i) report.methods.push_back(run_method(i, model));
    write_output(report);
    if (ranks_.is_root()) remove_unfinished(unfinished_folder(config_.first().output->place.folder));
    return report;
  }

 private:
  void open() {
    const JobConfig& first = config_.first();
    if (ranks_.is_root()) check_folders();
    inputs_.emplace(first);
    if (ranks_.is_root()) {
      warn_of_skipped(inputs_->skipped);
      warn_of_texts(inputs_->requests);
      inputs_->look_at_facts({});
      check_apart(first.output->place.folder, inputs_->files.checkpoint.folder());
    }
    check_lengths(inputs_->files, inputs_->requests);
    for (const ComparedMethod& method : config_.methods)
      for (const ResolvedJob& job : method.jobs) runs_.push_back(std::make_unique<MethodRun>(job, *inputs_, ranks_));
    if (!ranks_.is_root()) return;
    lock_.emplace(first.output->place.folder, kCompareOutput);
    check_folders();  // again: meanwhile another run may have ended, or a killed run's output may have been repaired
  }

  void check_folders() const {
    const OutputOptions& output = *config_.first().output;
    const std::filesystem::path unfinished = unfinished_folder(output.place.folder);
    check_apart(output.place.folder, config_.first().model);
    check_output_target(output.place.folder, output.if_exists, kCompareOutput);
    check_unfinished(unfinished);
    for (const ComparedMethod& method : config_.methods)
      if (method.job().statistics)
        for (const std::filesystem::path& folder : {output.place.folder, unfinished})
          check_cache_outside(method.job().statistics->cache, folder);
  }

  /// Returns work that is enough for each method.
  Workload work() const {
    Workload all = runs_.front()->work();
    for (const std::unique_ptr<MethodRun>& run : runs_) all = united(all, run->work());
    return all;
  }

  /// Runs the method with each seed.
  MethodResult run_method(size_t index, CausalLM& model) {
    const ComparedMethod& method = config_.methods[index];
    log_line(cat("compare  ", method.label, ", ", index + 1, "/", config_.methods.size()));
    MethodResult result;
    for (size_t seed = 0; seed < method.jobs.size() && result.error.empty(); ++seed) {
      std::unique_ptr<MethodRun>& run = runs_[index * method.jobs.size() + seed];
      if (!take_finished(method, method.jobs[seed], result)) run_anew(*run, model, {method, seed}, result);
      run.reset();
    }
    if (!result.error.empty()) result.runs.clear();
    return result;
  }

  StudySetting setting() const {
    StudySetting setting{.weights = inputs_->base_hash,
                         .config_json = inputs_->files.checkpoint.config_text(),
                         .computed_on = cat(inputs_->model_dtype, ", ", inputs_->devices, ", ", ranks_.size())};
    for (const std::vector<MetricRow>* rows : {&inputs_->before.metrics, &inputs_->before.side_effects.metrics})
      for (const MetricRow& row : *rows)
        for (const std::string& text : {row.name, row.protocol, row.asked}) setting.questions.push_back(text);
    return setting;
  }

  /// `name` is part of the key: two labels with equal options are two runs.
  std::string key_of(const JobConfig& job, const std::string& name) const {
    StudySetting with_name = setting();
    with_name.questions.push_back(name);
    return run_key(with_name, job.resolved, inputs_->requests);
  }

  /// Collective. Takes a run that an earlier call finished, if there is one.
  bool take_finished(const ComparedMethod& method, const JobConfig& job, MethodResult& result) {
    const std::string name = run_name(config_, method, job.run.seed);
    std::optional<ComparedRun> run;
    ranks_.run_collectively("progress", [&] {
      if (!ranks_.is_root()) return;
      const std::optional<std::string> text = finished_.find(key_of(job, name), name);
      if (!text) return;
      run = read_compared_run(named(from_kept(*text), method, name), inputs_->at_odds);
    });
    const bool is_there = broadcast_numbers(ranks_, {run ? 1 : 0}).front() != 0;
    if (!is_there) return false;
    left_.skip_run();
    if (run) add_run(std::move(*run), " (of an interrupted run)", result);
    return true;
  }

  RunDocument named(RunDocument document, const ComparedMethod& method, const std::string& name) const {
    document.label = name;
    if (config_.seeds() > 1) document.series = method.label;
    return document;
  }

  struct SeedOf {
    const ComparedMethod& method;
    size_t seed;
  };

  /// Runs from the unedited weights, and restores them at the end.
  void run_anew(MethodRun& run, CausalLM& model, const SeedOf& which, MethodResult& result) {
    const ResolvedJob& job = which.method.jobs[which.seed];
    const std::string name = run_name(config_, which.method, job.run.seed);
    left_.begin_run();
    run.stopwatch().restart();
    EditReport report;
    const std::optional<std::string> failure = ranks_.attempt("method", [&] {
      run.prepare(model);
      WeightTransaction transaction(model, [&](WeightId id) { return stored_weight(inputs_->files, model, id); });
      report = run.edit(model, transaction, {}).report;
    });
    left_.end_run();
    if (failure) {
      log_warning(cat(name, ": ", *failure));
      result.error = *failure;
      return;
    }
    run.stopwatch().raise_to(ranks_);
    report.stages = run.stopwatch().stages();
    report.unmet = unmet_thresholds(job, report.after);
    ranks_.run_collectively("progress", [&] {
      if (!ranks_.is_root()) return;
      ComparedRun finished =
          read_compared_run(named(run_document(report, job, name), which.method, name), inputs_->at_odds);
      finished_.keep(key_of(job, name), kept_text(finished.document), name);
      add_run(std::move(finished), "", result);
    });
  }

  void add_run(ComparedRun run, const char* origin, MethodResult& result) const {
    log_line(cat("compare  ", run.document.label, ": ", figures_text(run, inputs_->before.metrics), origin, "; ",
                 left_.text()));
    result.runs.push_back(std::move(run));
  }

  /// Writes the output. The folder appears only after it is complete and all ranks are still running.
  void write_output(const CompareReport& report) {
    const OutputOptions& output = *config_.first().output;
    std::optional<OutputFolder> folder;
    ranks_.run_collectively("export", [&] {
      if (!ranks_.is_root()) return;
      folder.emplace(output.place.folder, output.if_exists, kCompareOutput);
      std::vector<RunDocument> runs;
      for (size_t i = 0; i < report.methods.size(); ++i) {
        const ComparedMethod& method = config_.methods[i];
        if (const std::string& error = report.methods[i].error; !error.empty())
          runs.push_back(
              {.label = method.label, .json = {}, .job_yaml = to_yaml(method.job().resolved), .failure = error});
        for (const ComparedRun& run : report.methods[i].runs) {
          const std::filesystem::path own = folder->staging() / run_folder(config_, method, run.seed);
          make_folders(own);
          write_report_files(run.document, own);
          runs.push_back(run.document);
        }
      }
      write_comparison(runs, (output.place.folder / "").parent_path().filename().string(), folder->staging());
      write_text_file(folder->staging() / "job.yaml", to_yaml(with_format(config_.resolved, inputs_->request_format)));
      write_text_file(folder->staging() / kCompareFile, to_json(report, config_));
    });
    if (folder) folder->commit();
  }

  const CompareConfig& config_;
  Communicator& ranks_;
  FinishedRuns finished_;  // on root
  RunsLeft left_;
  std::optional<OutputLock> lock_;  // on root
  std::optional<EditInputs> inputs_;
  std::vector<std::unique_ptr<MethodRun>> runs_;  // by method, then by seed
};

}  // namespace

bool CompareReport::all_succeeded() const {
  return std::all_of(methods.begin(), methods.end(), [](const MethodResult& method) { return method.error.empty(); });
}

bool CompareReport::measures_success() const {
  return std::any_of(methods.begin(), methods.end(), [](const MethodResult& method) {
    return !method.runs.empty() && method.runs.front().success.measured > 0;
  });
}

bool CompareReport::seeds_change_nothing() const {
  return std::ranges::all_of(methods, [](const MethodResult& method) {
    return std::ranges::all_of(method.runs,
                               [&](const ComparedRun& run) { return run.after == method.runs.front().after; });
  });
}

std::vector<ExpectedFigure> beside_published(const CompareReport& report, const CompareConfig& config) {
  std::vector<ExpectedFigure> figures;
  for (const ExpectedFigures& expected : config.expected) {
    const auto found = std::find_if(config.methods.begin(), config.methods.end(),
                                    [&](const ComparedMethod& method) { return method.label == expected.label; });
    if (found == config.methods.end()) continue;
    const std::vector<ComparedRun>& runs = report.methods[static_cast<size_t>(found - config.methods.begin())].runs;
    for (const auto& [metric, published] : expected.means)
      figures.push_back({expected.label, metric, published, figure_of(runs, &ComparedRun::after, metric).mean});
  }
  return figures;
}

std::string run_name(const CompareConfig& config, const ComparedMethod& method, uint64_t seed) {
  return config.seeds() == 1 ? method.label : cat(method.label, ", seed ", seed);
}

std::string run_folder(const CompareConfig& config, const ComparedMethod& method, uint64_t seed) {
  return config.seeds() == 1 ? method.label : cat(method.label, "/seed-", seed);
}

CompareReport run_compare_job(const CompareConfig& config, Communicator& communicator, KeptRuns kept) {
  CompareReport report;
  communicator.run_collectively("compare methods",
                                [&] { report = CompareRun(config, communicator, std::move(kept)).run(); });
  return report;
}

}  // namespace lancet
