// The subcommands of `lancet`. Each add_ function adds a command to the parser and, when the command is chosen, sets
// the action to its work.
#pragma once

#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "command_line.h"
#include "lancet/core/error.h"
#include "lancet/distributed/rank_session.h"
#include "lancet/job/job_config.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/runtime/problem.h"
#include "lancet/studies/finished_runs.h"

namespace lancet::cli {

/// Output options that every command has.
struct Output {
  bool quiet = false;
  bool json = false;  ///< prints only JSON on stdout
};

void add_apply(CLI::App& app, Action& action);
void add_edit(CLI::App& app, Action& action);
void add_erase(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_stats(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_diff(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_help(CLI::App& app, Action& action);
void add_import(CLI::App& app, Action& action);
void add_init(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_launch(CLI::App& app, Action& action);
void add_log(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_presets(CLI::App& app, Action& action);
void add_push(CLI::App& app, Action& action);
void add_quantise(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_schema(CLI::App& app, Action& action);
void add_serve(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_undo(CLI::App& app, Action& action);

/// Adds --quiet, and --json, which `json` describes.
void add_output_options(CLI::App& command, Output& output,
                        const std::string& json = "Print one JSON document on stdout instead of the table");
/// Sets how much is shown on stderr, and makes signals end the program with a message. Call it before any other work.
void begin(const Output& output);

/// How a process of a job with several processes finds the others.
struct RankArguments {
  Launcher launcher = Launcher::kAuto;
  int64_t join_timeout_s = 300;
};
/// Lets several processes run `command` together.
void add_rank_options(CLI::App& command, RankArguments& ranks);
/// Returns the names of the commands that several processes can run together.
std::vector<std::string> commands_on_ranks(const CLI::App& app);

using lancet::Problem;
/// `error`: not null.
Problem problem_of(const std::exception_ptr& error);

/// Runs `work` as the rank that the environment names, or alone. An error is reported to the other ranks and to the
/// user. If ranks share a terminal, only root shows progress.
ExitCode run_as_rank(const RankArguments& ranks, const Output& output,
                     const std::function<ExitCode(RankSession&)>& work);

/// From now on, a signal that ends the program prints what is kept of the job's work. On root.
void say_what_is_kept(const JobConfig& job, Communicator& communicator);

/// As say_what_is_kept(), for a study: it also says which runs are finished. Returns where the study keeps them.
/// `folder`: empty for the one beside the job's output.
KeptRuns say_which_runs_are_kept(const JobConfig& job, Communicator& communicator, std::filesystem::path folder = {});

/// A job as the command line gives it: a file, or the parts of a one-line job; and overrides.
struct JobArguments {
  std::string file;
  std::string model;
  std::string prompt;
  std::string subject;
  std::string target;
  std::string requests;
  std::string out;
  std::vector<std::string> overrides;
  TypedOptions run;                   ///< flags of run:, which are applied after the overrides
  std::vector<std::string> compared;  ///< labels or methods; empty: all that the job has
};

/// Adds the job file, which may be left out, and overrides. Returns the argument of the file.
Argument add_job_file(CLI::App& command, JobArguments& arguments);
/// As add_job_file(), and adds the flags of run:.
Argument add_job(CLI::App& command, JobArguments& arguments);

/// Returns the completed text of the job. Throws: ConfigError that lists what is missing.
CompletedJob read_job_text(const JobArguments& arguments, JobPurpose purpose);

/// Reads and parses the job.
ResolvedJob read_job(const JobArguments& arguments, JobPurpose purpose);

/// Throws: ConfigError "command: ..." if a launcher started this process as one of several.
void refuse_several_processes(const char* command);

/// Collective. Runs read_job() on every rank, and sets the ranks' time limit to run.timeout_s.
ResolvedJob load_job(const JobArguments& arguments, JobPurpose purpose, RankSession& session);

}  // namespace lancet::cli
