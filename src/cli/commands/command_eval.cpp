#include <iostream>
#include <memory>

#include "commands.h"
#include "evaluation_text.h"
#include "lancet/core/strings.h"
#include "lancet/studies/eval_job.h"
#include "table.h"

namespace lancet::cli {
namespace {

std::string evaluation_text(const EvalReport& report) {
  std::vector<std::vector<std::string>> rows{{"metric, %", "value", "prompts"}};
  if (report.baseline) rows.front().insert(rows.front().begin() + 1, "baseline");
  for (const MetricRow& row : report.evaluation.metrics) {
    const Tally& total = report.evaluation.totals.find(row.name)->second;
    rows.push_back({row.name, metric_text(row, total.mean()), std::to_string(total.count)});
    if (report.baseline)
      rows.back().insert(rows.back().begin() + 1,
                         metric_text(row, report.baseline->totals.find(row.name)->second.mean()));
  }
  std::string out = rows.size() > 1 ? format_table(rows) : std::string();
  const Evaluation& before = report.baseline ? *report.baseline : report.evaluation;
  if (const std::string side_effects = side_effects_text(before.side_effects, report.evaluation.side_effects);
      !side_effects.empty())
    out += "\n" + side_effects;
  for (size_t i = 0; i < std::min<size_t>(5, report.evaluation.continuations.size()); ++i)
    out += cat("  ", one_line(report.requests[i].prompt.text, 60), " … ",
               one_line(report.evaluation.continuations[i], 60), "\n");
  return out;
}

ExitCode run_eval(const JobArguments& arguments, const std::string& baseline, const Output& output,
                  RankSession& session) {
  Communicator& communicator = session.communicator();
  const JobConfig job = load_job(arguments, JobPurpose::kEvaluate, session);
  const EvalReport report = run_eval_job(job, baseline, communicator);
  if (!communicator.is_root()) return ExitCode::kOk;
  std::cout << (output.json ? to_json(report, job) : evaluation_text(report));
  return ExitCode::kOk;
}

ExitCode run_stats(const JobArguments& arguments, const Output& output, RankSession& session) {
  Communicator& communicator = session.communicator();
  const JobConfig job = load_job(arguments, JobPurpose::kStatistics, session);
  say_what_is_kept(job, communicator);
  const StatisticsReport report = run_statistics_job(job, communicator);
  if (!communicator.is_root()) return ExitCode::kOk;
  if (output.json) {
    std::cout << to_json(report);
    return ExitCode::kOk;
  }
  if (output.quiet) return ExitCode::kOk;
  std::vector<std::vector<std::string>> rows{{"layer", "tokens", "trace/n", "from cache"}};
  for (const LayerStatisticsReport& layer : report.layers)
    rows.push_back({std::to_string(layer.layer), std::to_string(layer.tokens), cat(layer.mean_diagonal),
                    layer.from_cache ? "yes" : "no"});
  std::cout << format_table(rows);
  for (const LayerStatisticsReport& layer : report.layers) std::cout << "  " << layer.factor_file.string() << "\n";
  if (report.corpus_exhausted) std::cout << "  the corpus has fewer tokens than asked for; all were used\n";
  return ExitCode::kOk;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JobArguments>();
  auto baseline = std::make_shared<std::string>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  CLI::App& command = add_command(app, "eval",
                                  "Measure requests on a model as it is, edited or not.\n"
                                  "  lancet eval job.yaml --set model=out/demo --baseline data/demo-model\n"
                                  "  lancet eval --model DIR --requests FILE");
  add_job(command, *arguments);
  add_option(command, "--model", arguments->model, "Model folder").type("DIR");
  add_option(command, "--requests", arguments->requests, "Request file").type("FILE");
  add_option(command, "--baseline", *baseline, "Another model folder, measured first and compared with").type("DIR");
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    return run_as_rank(*ranks, *output,
                       [&](RankSession& session) { return run_eval(*arguments, *baseline, *output, session); });
  });
}

void add_stats(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JobArguments>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  CLI::App& command = add_command(app, "stats",
                                  "Collect the covariances that the job's editor needs into the cache.\n"
                                  "  lancet stats job.yaml");
  add_job(command, *arguments);
  add_option(command, "--model", arguments->model, "Model folder, instead of a job file; options as for lancet edit")
      .type("DIR");
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    return run_as_rank(*ranks, *output, [&](RankSession& session) { return run_stats(*arguments, *output, session); });
  });
}

}  // namespace lancet::cli
