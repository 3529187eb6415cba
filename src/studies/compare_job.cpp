#include "lancet/studies/compare_job.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/export/output_form.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/outcome/report_json.h"
#include "lancet/pipeline/earlier_output.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/pipeline/method_run.h"

namespace lancet {
namespace {

constexpr const char* kCompareFile = "compare.json";
constexpr OutputKind kCompareOutput{"compare", kCompareFile, "lancet-compare-"};

class CompareRun {
 public:
  CompareRun(const CompareConfig& config, Communicator& ranks) : config_(config), ranks_(ranks) {}

  CompareReport run() {
    ranks_.run_collectively("open", [&] { open(); });
    std::vector<JobFact> facts;
    for (const ComparedMethod& method : config_.methods)
      for (const JobFact& fact : job_facts(method.job, inputs_->files, inputs_->requests)) facts.push_back(fact);
    check_same(ranks_, facts);
    for (const std::unique_ptr<MethodRun>& run : runs_) run->look_into_cache();
    CausalLM model = load_replica(inputs_->files, first().run, work(), ranks_, inputs_->kept.get());
    const MemoryWatch memory_watch(devices_with_memory(model.placement(), inputs_->files.config.n_layers));
    inputs_->describe(model, ranks_);
    inputs_->before = inputs_->plan.run(model, "evaluate before", ranks_);

    CompareReport report;
    report.before = inputs_->before;
    report.base_hash = inputs_->base_hash;
    report.requests = static_cast<int64_t>(inputs_->requests.size());
    for (size_t i = 0; i < runs_.size(); ++i) report.methods.push_back(run_method(i, model));
    write_output(report);
    return report;
  }

 private:
  const JobConfig& first() const { return config_.methods.front().job; }

  void open() {
    if (ranks_.is_root()) check_folders();
    inputs_.emplace(first());
    if (ranks_.is_root()) {
      warn_of_skipped(inputs_->skipped);
      warn_of_texts(inputs_->requests);
      inputs_->look_at_facts({});
      check_apart(first().output->dir, inputs_->files.checkpoint.folder());
    }
    check_lengths(inputs_->files, inputs_->requests);
    for (const ComparedMethod& method : config_.methods)
      runs_.push_back(std::make_unique<MethodRun>(method.job, *inputs_, ranks_));
    if (!ranks_.is_root()) return;
    lock_.emplace(first().output->dir, kCompareOutput);
    check_folders();  // again: another run may have ended before the lock, or a killed one been made good
  }

  void check_folders() const {
    const OutputOptions& output = *first().output;
    check_apart(output.dir, first().model);
    check_output_target(output.dir, output.if_exists, kCompareOutput);
    for (const ComparedMethod& method : config_.methods)
      if (method.job.statistics) check_cache_outside(method.job.statistics->cache, output.dir);
  }

  /// What suffices for each method.
  Workload work() const {
    Workload all = runs_.front()->work();
    for (const std::unique_ptr<MethodRun>& run : runs_) all = united(all, run->work());
    return all;
  }

  /// Runs the method from the unedited weights, which the model has again at the end.
  MethodResult run_method(size_t index, CausalLM& model) {
    log_line(cat("compare  ", config_.methods[index].label, ", ", index + 1, "/", runs_.size()));
    MethodRun& run = *runs_[index];
    run.stopwatch().restart();
    MethodResult result;
    const std::optional<std::string> failure = ranks_.attempt("method", [&] {
      run.prepare(model);
      WeightTransaction transaction(model, [&](WeightId id) { return stored_weight(inputs_->files, model, id); });
      result.report = run.edit(model, transaction, {}).report;
    });
    if (failure) {
      log_warning(cat(config_.methods[index].label, ": ", *failure));
      result.error = *failure;
    } else {
      run.stopwatch().raise_to(ranks_);
      result.report.stages = run.stopwatch().stages();
      result.report.unmet = unmet_thresholds(config_.methods[index].job, result.report.after);
    }
    runs_[index].reset();
    return result;
  }

  /// The folder appears only when all ranks are still there after it was written.
  void write_output(const CompareReport& report) {
    const OutputOptions& output = *first().output;
    std::optional<OutputFolder> folder;
    ranks_.run_collectively("export", [&] {
      if (!ranks_.is_root()) return;
      folder.emplace(output.dir, output.if_exists, kCompareOutput);
      std::vector<RunDocument> runs;
      for (size_t i = 0; i < report.methods.size(); ++i) {
        const auto& [label, job] = config_.methods[i];
        if (const std::string& error = report.methods[i].error; !error.empty()) {
          runs.push_back({.label = label, .json = {}, .job_yaml = to_yaml(job.resolved), .failure = error});
          continue;
        }
        runs.push_back(run_document(report.methods[i].report, job, label));
        make_folders(folder->staging() / label);
        write_report_files(runs.back(), folder->staging() / label);
      }
      write_comparison(runs, (output.dir / "").parent_path().filename().string(), folder->staging());
      write_text_file(folder->staging() / "job.yaml", to_yaml(with_format(config_.resolved, inputs_->request_format)));
      write_text_file(folder->staging() / kCompareFile, to_json(report, config_));
    });
    if (folder) folder->commit();
  }

  const CompareConfig& config_;
  Communicator& ranks_;
  std::optional<OutputLock> lock_;  // root's
  std::optional<EditInputs> inputs_;
  std::vector<std::unique_ptr<MethodRun>> runs_;
};

/// Returns means in the order of `metrics`.
Json means_json(std::span<const MetricRow> metrics, const Tallies& tallies) {
  Json json = Json::object();
  for (const MetricRow& row : metrics)
    if (const auto tally = tallies.find(row.name); tally != tallies.end()) json[row.name] = mean_json(tally->second);
  return json;
}

Json result_json(const MethodResult& result, const ComparedMethod& method, std::span<const MetricRow> metrics) {
  Json json = {{"label", method.label},
               {"method", method.job.method},
               {"status", result.error.empty() ? "done" : "failed"},
               {"error", result.error.empty() ? Json(nullptr) : Json(result.error)}};
  if (!result.error.empty()) return json;
  const Tallies right_after = result.report.right_after();
  Json seconds = Json::object();
  for (const StageCost& stage : result.report.stages) seconds[stage.stage] = stage.seconds;
  json["after"] = means_json(metrics, result.report.after.totals);
  json["right_after"] = right_after.empty() ? Json(nullptr) : means_json(metrics, right_after);
  if (const SideEffectReport& side_effects = result.report.after.side_effects; !side_effects.metrics.empty())
    for (const char* name : {"side_effects", "costs"})  // the second in an earlier version
      json[name] = means_json(side_effects.metrics, side_effects.totals);
  const SuccessCount count = count_successes(result.report);
  for (const char* name : {"success", "took"})  // the second in an earlier version
    json[name] = count.measured > 0 ? Json{{"edits", count.successes}, {"of", count.measured}} : Json(nullptr);
  json["unmet"] = result.report.unmet;
  json["seconds_per_edit"] = seconds_per_edit(result.report);
  json["seconds"] = seconds;
  json["peak_bytes"] = bytes_json(overall_peaks(result.report.stages));
  json["report"] = method.label + "/report.json";
  return json;
}

}  // namespace

bool CompareReport::all_succeeded() const {
  return std::all_of(methods.begin(), methods.end(), [](const MethodResult& method) { return method.error.empty(); });
}

bool CompareReport::measures_success() const {
  return std::any_of(methods.begin(), methods.end(), [](const MethodResult& method) {
    return method.error.empty() && count_successes(method.report).measured > 0;
  });
}

std::vector<ExpectedFigure> beside_published(const CompareReport& report, const CompareConfig& config) {
  std::vector<ExpectedFigure> figures;
  for (const ExpectedFigures& expected : config.expected) {
    const auto found = std::find_if(config.methods.begin(), config.methods.end(),
                                    [&](const ComparedMethod& method) { return method.label == expected.label; });
    if (found == config.methods.end()) continue;
    const Tallies& after = report.methods[static_cast<size_t>(found - config.methods.begin())].report.after.totals;
    for (const auto& [metric, published] : expected.means) {
      const auto tally = after.find(metric);
      figures.push_back(
          {expected.label, metric, published, tally == after.end() ? std::nullopt : tally->second.mean()});
    }
  }
  return figures;
}

double seconds_per_edit(const EditReport& report) {
  double seconds = 0;
  for (const BatchReport& batch : report.batches) seconds += batch.seconds;
  return seconds / static_cast<double>(report.requests.size());
}

CompareReport run_compare_job(const CompareConfig& config, Communicator& communicator) {
  CompareReport report;
  communicator.run_collectively("compare methods", [&] { report = CompareRun(config, communicator).run(); });
  return report;
}

std::string to_json(const CompareReport& report, const CompareConfig& config) {
  const JobConfig& job = config.methods.front().job;
  Json methods = Json::array(), protocols = Json::object();
  for (size_t i = 0; i < report.methods.size(); ++i)
    methods.push_back(result_json(report.methods[i], config.methods[i], report.before.metrics));
  Json published = Json::array();
  for (const ExpectedFigure& each : beside_published(report, config))
    published.push_back({{"label", each.label},
                         {"metric", each.metric},
                         {"published", each.published},
                         {"here", each.here ? Json(*each.here) : Json(nullptr)}});
  for (const MetricRow& row : report.before.metrics) protocols[row.name] = row.protocol;
  for (const MetricRow& row : report.before.side_effects.metrics) protocols[row.name] = row.protocol;
  return dump_report({{"format", "lancet-compare-1"},
                      {"lancet", kVersion},
                      {"model", {{"folder", job.model.string()}, {"content_hash", report.base_hash}}},
                      {"requests", report.requests},
                      {"batch", job.schedule.largest_batch(report.requests)},
                      {"protocols", protocols},
                      {"before", means_json(report.before.metrics, report.before.totals)},
                      {"methods", methods},
                      {"expected", published}});
}

}  // namespace lancet
