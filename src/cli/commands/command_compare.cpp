#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <span>
#include <sstream>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/plan/model_session.h"
#include "lancet/studies/compare_job.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

/// Returns "86 of 100"; with several seeds the edits of all are counted together.
std::string success_cell(std::span<const ComparedRun> runs) {
  size_t successes = 0, measured = 0;
  for (const ComparedRun& run : runs) {
    successes += run.success.successes;
    measured += run.success.measured;
  }
  return measured == 0 ? "n/a" : cat(successes, " of ", measured);
}

/// Returns "98.2", with several seeds "98.2 ± 0.4".
std::string figure_cell(const MetricRow& row, const SeedFigure& figure) {
  return figure.deviation ? cat(metric_text(row, figure.mean), " ± ", metric_text(row, figure.deviation))
                          : metric_text(row, figure.mean);
}

std::string seconds_cell(std::span<const ComparedRun> runs) {
  std::vector<double> seconds;
  for (const ComparedRun& run : runs) seconds.push_back(run.seconds_per_edit);
  std::ostringstream text;
  text.precision(3);
  text << *figure_of(seconds).mean;
  return text.str();
}

std::string peaks_cell(std::span<const ComparedRun> runs) {
  PeakBytes peaks;
  for (const ComparedRun& run : runs) raise_to(peaks, run.peaks);
  return peaks_text(peaks);
}

/// Returns a row for each method: how many edits succeeded, its shares, and what the edits cost. `shares`: metrics of a
/// method that finished.
std::string methods_text(const CompareReport& report, const CompareConfig& config, const std::string& title,
                         MetricMeans ComparedRun::*shares) {
  std::vector<std::string> head{title, "success"}, before{"before", ""};
  for (const MetricRow& row : report.before.metrics) {
    head.push_back(row.name);
    before.push_back(metric_text(row, report.before.totals.find(row.name)->second.mean()));
  }
  head.insert(head.end(), {"s/edit", "peak memory"});
  std::vector<std::vector<std::string>> rows{head, before};
  for (size_t i = 0; i < report.methods.size(); ++i) {
    const std::vector<ComparedRun>& runs = report.methods[i].runs;
    rows.push_back({config.methods[i].label});
    if (runs.empty()) {
      rows.back().emplace_back("failed");
      continue;
    }
    rows.back().push_back(success_cell(runs));
    for (const MetricRow& row : report.before.metrics)
      rows.back().push_back(figure_cell(row, figure_of(runs, shares, row.name)));
    rows.back().push_back(seconds_cell(runs));
    rows.back().push_back(peaks_cell(runs));
  }
  return format_table(rows);
}

std::string comparison_text(const CompareReport& report, const CompareConfig& config) {
  const bool measured_between = std::ranges::any_of(report.methods, [](const MethodResult& each) {
    return !each.runs.empty() && each.runs.front().batches > 1 && !each.runs.front().right_after.empty();
  });
  std::string out;
  if (measured_between)
    out = methods_text(report, config, "right after each batch, %", &ComparedRun::right_after) + "\n" +
          methods_text(report, config, "after all batches, %", &ComparedRun::after);
  else
    out = methods_text(report, config, "after, %", &ComparedRun::after);
  for (size_t i = 0; i < report.methods.size(); ++i) {
    const MethodResult& method = report.methods[i];
    if (!method.error.empty()) out += cat("  ", config.methods[i].label, ": ", method.error, "\n");
    for (const ComparedRun& run : method.runs)
      for (const std::string& unmet : run.unmet) out += cat("  ", run.document.label, ": accept: ", unmet, "\n");
  }
  if (config.seeds() > 1)
    out += cat("  mean ± standard deviation of ", config.seeds(), " runs, seeds ", config.first().run.seed, " to ",
               config.methods.front().jobs.back().run.seed, "\n");
  if (report.measures_success()) out += cat("  success: the model says the target at the end (", kSuccessMetric, ")\n");
  return out;
}

/// Returns a row for each published figure: the measured one, and their difference.
std::string expected_text(const CompareReport& report, const CompareConfig& config) {
  std::vector<std::vector<std::string>> rows{{"expected, %", "metric", "published", "here", "distance"}};
  for (const ExpectedFigure& each : beside_published(report, config)) {
    const double distance = each.here.value_or(each.published) - each.published;
    rows.push_back({each.label, each.metric, percent_text(each.published), percent_text(each.here),
                    each.here ? cat(distance < 0 ? "-" : "+", percent_text(std::abs(distance))) : "n/a"});
  }
  return format_table(rows);
}

void warn(const CompareReport& report, const CompareConfig& config) {
  for (const MethodResult& method : report.methods)
    for (const ComparedRun& run : method.runs) {
      for (const std::string& warning : run.warnings) log_warning(cat(run.document.label, ": ", warning));
      if (run.success.none()) log_warning(cat(run.document.label, ": no edit took"));
    }
  if (config.seeds() > 1 && report.seeds_change_nothing())
    log_warning(
        cat("seeds: the ", config.seeds(), " runs of each method gave the same figures: what goes by run.seed ",
            "(contexts that the model writes, schedule.order: shuffled, statistics.corpus: self) is not in this "
            "job, or changed none of them"));
}

enum class Expected { kNotAsked, kShown };

CompareConfig load_comparison(const JobArguments& arguments, Expected expected, RankSession& session) {
  CompareConfig config;
  session.communicator().run_collectively("parse", [&] {
    const CompletedJob text = read_job_text(arguments, JobPurpose::kCompare);
    config = parse_compare_job(text.tree, text.source.base, text.source.name, arguments.compared);
    if (expected == Expected::kShown && config.expected.empty())
      throw ConfigError(cat(text.source.name,
                            ": --expect: expected a section expect: with published figures of the "
                            "methods that are compared"));
    const auto needs_statistics = [](const ComparedMethod& each) { return each.job().needs.statistics; };
    const auto first = std::find_if(config.methods.begin(), config.methods.end(), needs_statistics);
    if (first != config.methods.end()) tell_defaults(text, first->job());
  });
  for (ComparedMethod& method : config.methods)
    for (ResolvedJob& job : method.jobs) job.run.on_host = session.on_host();
  return config;
}

ExitCode run_compare(const CompareConfig& config, Expected expected, const Output& output, Communicator& communicator) {
  const JobConfig& first = config.first();
  const CompareReport report = run_compare_job(config, communicator, say_which_runs_are_kept(first, communicator));
  const ExitCode code = report.all_succeeded() ? ExitCode::kOk : ExitCode::kNumeric;
  if (!communicator.is_root()) return code;
  warn(report, config);
  if (output.json)
    std::cout << to_json(report, config);
  else if (!output.quiet)
    std::cout << "\n"
              << comparison_text(report, config)
              << (expected == Expected::kShown ? "\n" + expected_text(report, config) : "") << "\n  "
              << counted(static_cast<size_t>(report.requests), "request")
              << "; written: " << first.output->place.folder.string() << "\n";
  return code;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JobArguments>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  auto expects = std::make_shared<bool>(false);
  CLI::App& command = add_command(app, "compare",
                                  "Edit the same requests with several methods and measure each; writes no model.\n"
                                  "The row of each method is printed and kept when it is done. After a stop, the same "
                                  "command continues.\n"
                                  "  lancet compare job.yaml --methods memit,alphaedit");
  add_job(command, *arguments);
  add_option(
      command, "--methods", arguments->compared,
      "Labels of the job's section compare, or names of methods; default: all labels, or without that section the "
      "job's method, memit, alphaedit and rome")
      .separated_by(',');
  command.add_flag("--expect", *expects,
                   "Show the published results of the job's section expect beside the measured ones");
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    if (arguments->file.empty()) throw ConfigError("lancet compare: expected a job file");
    return run_as_rank(*ranks, *output, [&](RankSession& session) {
      const Expected expected = *expects ? Expected::kShown : Expected::kNotAsked;
      const CompareConfig config = load_comparison(*arguments, expected, session);
      const JobConfig& first = config.first();
      session.set_timeout(std::chrono::seconds(first.run.timeout_s));
      return run_on_model_ranks(first.run, first.ignore_config_keys, session.communicator(),
                                [&](Communicator& own) { return run_compare(config, expected, *output, own); });
    });
  });
}

}  // namespace lancet::cli
