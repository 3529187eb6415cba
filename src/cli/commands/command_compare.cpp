#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <sstream>

#include <CLI/CLI.hpp>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/editors/registry.h"
#include "lancet/plan/model_session.h"
#include "lancet/studies/compare_job.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

/// "86 of 100".
std::string success_cell(const EditReport& report) {
  const SuccessCount count = count_successes(report);
  return count.measured == 0 ? "n/a" : cat(count.successes, " of ", count.measured);
}

/// A row for each method: how many edits took, its shares, and what the edits cost. `shares`: of a method that came to
/// its end.
std::string methods_text(const CompareReport& report, const CompareConfig& config, const std::string& title,
                         const std::function<Tallies(const EditReport&)>& shares) {
  std::vector<std::string> head{title, "success"}, before{"before", ""};
  for (const MetricRow& row : report.before.metrics) {
    head.push_back(row.name);
    before.push_back(metric_text(row, report.before.totals.find(row.name)->second.mean()));
  }
  head.insert(head.end(), {"s/edit", "peak memory"});
  std::vector<std::vector<std::string>> rows{head, before};
  for (size_t i = 0; i < report.methods.size(); ++i) {
    const MethodResult& method = report.methods[i];
    rows.push_back({config.methods[i].label});
    if (!method.error.empty()) {
      rows.back().emplace_back("failed");
      continue;
    }
    rows.back().push_back(success_cell(method.report));
    const Tallies measured = shares(method.report);
    for (const MetricRow& row : report.before.metrics)
      if (const auto tally = measured.find(row.name); tally != measured.end())
        rows.back().push_back(metric_text(row, tally->second.mean()));
    std::ostringstream seconds;
    seconds.precision(3);
    seconds << seconds_per_edit(method.report);
    rows.back().push_back(seconds.str());
    rows.back().push_back(peaks_text(overall_peaks(method.report.stages)));
  }
  return format_table(rows);
}

std::string comparison_text(const CompareReport& report, const CompareConfig& config) {
  const auto after = [](const EditReport& each) { return each.after.totals; };
  const auto right_after = [](const EditReport& each) { return each.right_after(); };
  const bool measured_between = std::any_of(report.methods.begin(), report.methods.end(), [](const MethodResult& each) {
    return each.error.empty() && each.report.batches.size() > 1 && !each.report.right_after().empty();
  });
  std::string out;
  if (measured_between)
    out = methods_text(report, config, "right after each batch, %", right_after) + "\n" +
          methods_text(report, config, "after all batches, %", after);
  else
    out = methods_text(report, config, "after, %", after);
  for (size_t i = 0; i < report.methods.size(); ++i) {
    const MethodResult& method = report.methods[i];
    if (!method.error.empty()) out += cat("  ", config.methods[i].label, ": ", method.error, "\n");
    for (const std::string& unmet : method.report.unmet)
      out += cat("  ", config.methods[i].label, ": accept: ", unmet, "\n");
  }
  if (report.measures_success()) out += cat("  success: the model says the target at the end (", kSuccessMetric, ")\n");
  return out;
}

/// A row for each published figure, what was found here, and how far that lies from it.
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
  for (size_t i = 0; i < report.methods.size(); ++i) {
    const std::string& label = config.methods[i].label;
    const EditReport& each = report.methods[i].report;
    for (const std::string& warning : each.outcome.warnings) log_warning(cat(label, ": ", warning));
    if (count_successes(each).none()) log_warning(cat(label, ": no edit took"));
  }
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
    const auto needs_statistics = [](const ComparedMethod& each) {
      return make_editor(each.job.editor)->needs().statistics;
    };
    const auto first = std::find_if(config.methods.begin(), config.methods.end(), needs_statistics);
    if (first != config.methods.end()) tell_defaults(text, first->job);
  });
  for (ComparedMethod& method : config.methods) method.job.run.on_host = session.on_host();
  return config;
}

ExitCode run_compare(const CompareConfig& config, Expected expected, const Output& output, Communicator& communicator) {
  const JobConfig& first = config.methods.front().job;
  say_what_is_kept(first, communicator);
  const CompareReport report = run_compare_job(config, communicator);
  const ExitCode code = report.all_succeeded() ? ExitCode::kOk : ExitCode::kNumeric;
  if (!communicator.is_root()) return code;
  warn(report, config);
  if (output.json)
    std::cout << to_json(report, config);
  else if (!output.quiet)
    std::cout << "\n"
              << comparison_text(report, config)
              << (expected == Expected::kShown ? "\n" + expected_text(report, config) : "") << "\n  "
              << counted(static_cast<size_t>(report.requests), "request") << "; written: " << first.output->dir.string()
              << "\n";
  return code;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JobArguments>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  auto expects = std::make_shared<bool>(false);
  CLI::App& command = add_command(app, "compare",
                                  "Edit the same requests by several methods and measure each; writes no model.\n"
                                  "  lancet compare job.yaml --methods memit,alphaedit");
  add_job(command, *arguments);
  add_option(command, "--methods", arguments->compared,
             "Labels of the job's compare: sections, or names of methods; default: all sections, or without any the "
             "job's method, memit, alphaedit and rome")
      .separated_by(',');
  command.add_flag("--expect", *expects, "Show the job's expect:, published figures, beside those that were found");
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    if (arguments->file.empty()) throw ConfigError("lancet compare: expected a job file");
    return run_as_rank(*ranks, *output, [&](RankSession& session) {
      const Expected expected = *expects ? Expected::kShown : Expected::kNotAsked;
      const CompareConfig config = load_comparison(*arguments, expected, session);
      const JobConfig& first = config.methods.front().job;
      session.set_timeout(std::chrono::seconds(first.run.timeout_s));
      return run_on_model_ranks(first.run, first.ignore_config_keys, session.communicator(),
                                [&](Communicator& own) { return run_compare(config, expected, *output, own); });
    });
  });
}

}  // namespace lancet::cli
