#include <iostream>
#include <memory>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/plan/model_session.h"
#include "lancet/push/server_eval.h"
#include "lancet/studies/eval_job.h"
#include "servers/server_arguments.h"
#include "terminal.h"

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

ExitCode run_eval(const JobConfig& job, const std::string& baseline, const Output& output, Communicator& communicator) {
  const EvalReport report = run_eval_job(job, baseline, communicator);
  if (!communicator.is_root()) return ExitCode::kOk;
  std::cout << (output.json ? to_json(report, job) : evaluation_text(report));
  return ExitCode::kOk;
}

struct EvalArguments {
  JobArguments job;
  std::string baseline;
  std::string server, server_kind = server_kinds().front(), adapter;
  ServerArguments access;
};

ExitCode run_eval_of_server(const EvalArguments& arguments, const Output& output) {
  begin(output);
  if (!arguments.baseline.empty()) throw ConfigError("lancet eval: expected either --server or --baseline");
  const JobConfig job = read_job(arguments.job, JobPurpose::kEvaluate);
  const EvalReport report = run_server_eval_job(job, {.access = read_server_access(arguments.server, arguments.access),
                                                      .kind = arguments.server_kind,
                                                      .adapter = arguments.adapter});
  for (const auto& [name, why] : report.server->not_measured) log_warning(cat("not measured: ", name, ": ", why));
  std::cout << (output.json ? to_json(report, job) : evaluation_text(report));
  return ExitCode::kOk;
}

ExitCode run_stats(const ResolvedJob& job, const Output& output, Communicator& communicator) {
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
  for (const LayerStatisticsReport& layer : report.layers) {
    std::cout << "  " << layer.factor_file.string() << "\n";
    if (!layer.gradients_file.empty()) std::cout << "  " << layer.gradients_file.string() << "\n";
  }
  if (report.corpus_exhausted) std::cout << "  the corpus has fewer tokens than asked for; all were used\n";
  return ExitCode::kOk;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<EvalArguments>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  CLI::App& command = add_command(app, "eval",
                                  "Measure requests on a model without editing it, or on a server that runs a model.\n"
                                  "  lancet eval job.yaml --set model=out/demo --baseline data/demo-model\n"
                                  "  lancet eval --model DIR --requests FILE\n"
                                  "  lancet eval job.yaml --server http://localhost:8000");
  add_job(command, arguments->job);
  add_option(command, "--model", arguments->job.model, "Model folder").type("DIR");
  add_option(command, "--requests", arguments->job.requests, "Request file").type("FILE");
  add_option(command, "--baseline", arguments->baseline,
             "Another model folder, which is measured first and compared with the model")
      .type("DIR");
  add_option(command, "--server", arguments->server,
             "Measure this server with OpenAI's API; only the tokenizer is read from the model's folder")
      .type("URL");
  add_option(command, "--server-kind", arguments->server_kind,
             "Program of the server; auto: found out by asking the server")
      .one_of(server_kinds())
      .shows_default();
  add_option(command, "--adapter", arguments->adapter, "Name of the server's adapter to ask");
  add_server_options(command, arguments->access);
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    if (!arguments->server.empty()) return run_eval_of_server(*arguments, *output);
    if (!arguments->adapter.empty() || !arguments->access.token_env.empty() || !arguments->access.token_file.empty())
      throw ConfigError("lancet eval: --adapter, --token-env and --token-file: expected --server with them, got none");
    return run_as_rank(*ranks, *output, [&](RankSession& session) {
      const JobConfig job = load_job(arguments->job, JobPurpose::kEvaluate, session);
      return run_on_model_ranks(job.run, job.ignore_config_keys, session.communicator(),
                                [&](Communicator& own) { return run_eval(job, arguments->baseline, *output, own); });
    });
  });
}

void add_stats(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JobArguments>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  CLI::App& command = add_command(app, "stats",
                                  "Collect the covariances that the job's editor needs, and keep them in the cache.\n"
                                  "  lancet stats job.yaml");
  add_job(command, *arguments);
  add_option(command, "--model", arguments->model,
             "Model folder, instead of a job file; options come from the same sources as in lancet edit")
      .type("DIR");
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    return run_as_rank(*ranks, *output, [&](RankSession& session) {
      const ResolvedJob job = load_job(*arguments, JobPurpose::kStatistics, session);
      return run_on_model_ranks(job.run, job.ignore_config_keys, session.communicator(),
                                [&](Communicator& own) { return run_stats(job, *output, own); });
    });
  });
}

}  // namespace lancet::cli
