// Shared code of the commands that run a job: the job's text (a file, or one line), the output, and the ranks that run
// it together.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/job_setup/parse_job.h"
#include "lancet/pipeline/edit_job.h"
#include "terminal.h"

namespace lancet::cli {

void add_output_options(CLI::App& command, Output& output, const std::string& json) {
  add_flag(command, "-q,--quiet", output.quiet,
           "Show only warnings, errors, and results that are written nowhere else");
  add_flag(command, "--json", output.json, json);
}

void begin(const Output& output) {
  stderr_reporter().set_verbosity(output.quiet || output.json ? Verbosity::kQuiet : Verbosity::kNormal);
  end_on_signals();
}

Argument add_job_file(CLI::App& command, JobArguments& arguments) {
  Argument file =
      add_option(command, "job", arguments.file, "Job file (YAML or JSON); paths in it are relative to its folder")
          .type("FILE");
  add_option(
      command, "--set", arguments.overrides,
      "Change a key of the job: --set run.dtype=f32 --set model=DIR; its paths are relative to the current folder")
      .repeats()
      .type("KEY=VALUE");
  return file;
}

Argument add_job(CLI::App& command, JobArguments& arguments) {
  Argument file = add_job_file(command, arguments);
  arguments.run.add(command, RunSpec::kAll);
  return file;
}

ResolvedJob read_job(const JobArguments& arguments, JobPurpose purpose) {
  const CompletedJob text = read_job_text(arguments, purpose);
  ResolvedJob job = parse_job(text.tree, text.source.base, text.source.name, purpose);
  if (purpose != JobPurpose::kEvaluate) tell_defaults(text, job);
  return job;
}

ResolvedJob load_job(const JobArguments& arguments, JobPurpose purpose, RankSession& session) {
  ResolvedJob job;
  session.communicator().run_collectively("parse", [&] { job = read_job(arguments, purpose); });
  session.set_timeout(std::chrono::seconds(job.run.timeout_s));
  job.run.on_host = session.on_host();
  return job;
}

// The text of a job: a file, or one line.

namespace {

namespace fs = std::filesystem;

ConfigTree map_of(const char* key, const std::string& value) {
  ConfigTree map = ConfigTree::map();
  map.set(key, ConfigTree::text(value));
  return map;
}

/// Returns the job of --model, --prompt, --subject, --target and --out. Its paths are relative to the current folder.
ConfigTree one_line_job(const JobArguments& arguments) {
  ConfigTree job = map_of("model", arguments.model);
  if (!arguments.requests.empty()) {
    job.set("requests", map_of("path", arguments.requests));
  } else if (!arguments.prompt.empty()) {
    ConfigTree request = map_of("prompt", arguments.prompt);
    if (!arguments.subject.empty()) request.set("subject", ConfigTree::text(arguments.subject));
    if (!arguments.target.empty()) request.set("target", ConfigTree::text(arguments.target));
    job.set("requests", ConfigTree::list({std::move(request)}));
  }
  if (!arguments.out.empty()) job.set("output", map_of("dir", arguments.out));
  return job;
}

/// Checks the command line for missing and contradictory arguments, before the job is read.
void check_one_line(const JobArguments& arguments, JobPurpose purpose) {
  std::vector<std::string> missing;
  if (arguments.model.empty()) missing.emplace_back("--model DIR");
  if (purpose == JobPurpose::kEdit && arguments.requests.empty()) {
    if (arguments.prompt.empty()) missing.emplace_back("--prompt \"The capital of {} is\"");
    if (arguments.subject.empty()) missing.emplace_back("--subject NAME");
    if (arguments.target.empty()) missing.emplace_back("--target TEXT");
  }
  if (purpose == JobPurpose::kEdit && arguments.out.empty()) missing.emplace_back("--out DIR");
  if (purpose == JobPurpose::kEvaluate && arguments.requests.empty()) missing.emplace_back("--requests FILE");
  if (!missing.empty()) throw ConfigError("without a job file, these are missing: " + join(missing));
  for (const auto& [value, name] :
       {std::pair{&arguments.prompt, "--prompt"}, std::pair{&arguments.subject, "--subject"},
        std::pair{&arguments.target, "--target"}})
    if (!arguments.requests.empty() && !value->empty())
      throw ConfigError(cat(name, ": spells one fact, and --requests ", arguments.requests,
                            " names a file of facts: expected one of the two"));
}

void check_job_file(const JobArguments& arguments) {
  for (const auto& [value, name] :
       {std::pair{&arguments.model, "--model"}, std::pair{&arguments.prompt, "--prompt"},
        std::pair{&arguments.subject, "--subject"}, std::pair{&arguments.target, "--target"},
        std::pair{&arguments.requests, "--requests"}, std::pair{&arguments.out, "--out"}})
    if (!value->empty())
      throw ConfigError(
          cat(name, ": cannot be used with a job file. Change the job with --set, e.g. --set output.dir=DIR"));
}

}  // namespace

CompletedJob read_job_text(const JobArguments& arguments, JobPurpose purpose) {
  const bool from_file = !arguments.file.empty();
  if (from_file)
    check_job_file(arguments);
  else
    check_one_line(arguments, purpose);
  const fs::path file(arguments.file);
  const bool needs_editor = purpose == JobPurpose::kEdit || purpose == JobPurpose::kStatistics;
  const bool may_choose = purpose == JobPurpose::kErase || (!from_file && needs_editor);
  const EditorChoice choice = purpose == JobPurpose::kCompare ? EditorChoice::kCompared
                              : may_choose                    ? EditorChoice::kOpen
                                                              : EditorChoice::kNamed;
  std::vector<std::string> changes = arguments.overrides;
  for (std::string& change : arguments.run.overrides(JobSpec::kRun.key)) changes.push_back(std::move(change));
  return complete_job(from_file ? load_config(file) : one_line_job(arguments),
                      from_file ? JobSource{fs::absolute(file).parent_path(), file.string()}
                                : JobSource{fs::current_path(), "command line"},
                      changes, choice, arguments.compared);
}

// Commands that several processes can run together.

namespace {

constexpr const char* kLauncherOption = "--launcher";

}  // namespace

void add_rank_options(CLI::App& command, RankArguments& ranks) {
  static const std::map<std::string, Launcher> kLaunchers{{"auto", Launcher::kAuto},
                                                          {"none", Launcher::kNone},
                                                          {"torchrun", Launcher::kTorchrun},
                                                          {"slurm", Launcher::kSlurm},
                                                          {"openmpi", Launcher::kOpenMpi}};
  command
      .add_option(
          kLauncherOption, ranks.launcher,
          "Launcher whose environment variables say which rank of a job this process is; none: a job of one process")
      ->transform(CLI::CheckedTransformer(kLaunchers).description(""))
      ->type_name("{auto,none,torchrun,slurm,openmpi}")
      ->default_str("auto");
  command
      .add_option("--join-timeout", ranks.join_timeout_s,
                  "How long to wait for all ranks of the job to start, in seconds")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
}

std::vector<std::string> commands_on_ranks(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (command->get_option_no_throw(kLauncherOption) != nullptr) names.push_back(command->get_name());
  std::sort(names.begin(), names.end());
  return names;
}

void say_what_is_kept(const JobConfig& job, Communicator& communicator) {
  if (communicator.is_root()) set_stop_words([kept = KeptWork(job)] { return kept.text(); });
}

namespace {

/// The names of the runs that a study has kept. The thread that handles signals prints them.
class KeptNames {
 public:
  void add(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.push_back(name);
  }
  /// Returns "; done: memit, alphaedit".
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return names_.empty() ? "" : cat("; done: ", join(names_));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
};

}  // namespace

KeptRuns say_which_runs_are_kept(const JobConfig& job, Communicator& communicator, std::filesystem::path folder) {
  if (folder.empty()) folder = unfinished_folder(job.output->place.folder);
  auto names = std::make_shared<KeptNames>();
  if (communicator.is_root())
    set_stop_words([kept = KeptWork(job, folder), names] { return kept.text() + names->text(); });
  return {.folder = folder, .on_kept = [names](const std::string& name) { names->add(name); }};
}

Problem problem_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& known) {
    return lancet::problem_of(known);
  }
}

void refuse_several_processes(const char* command) {
  const LaunchInfo launch = read_launch(process_environment(), Launcher::kAuto);
  if (launch.size > 1)
    throw ConfigError(cat(command, ": started as one of ", launch.size, " processes by ", launch.launcher,
                          ": expected one process; it takes all devices of run.devices"));
}

ExitCode run_as_rank(const RankArguments& ranks, const Output& output,
                     const std::function<ExitCode(RankSession&)>& work) {
  begin(output);
  const LaunchInfo launch = read_launch(process_environment(), ranks.launcher);
  const bool shares_terminal = launch.rank > 0 && !launch.has_own_log;
  if (shares_terminal) stderr_reporter().set_verbosity(Verbosity::kQuiet);
  if (shares_terminal) set_stop_words([] { return std::nullopt; });  // only rank 0 prints it
  if (launch.rank > 0) stderr_reporter().set_error_prefix(cat("lancet (rank ", launch.rank, "): error: "));
  RankSession session(launch, std::chrono::seconds(ranks.join_timeout_s));
  try {
    return work(session);
  } catch (...) {
    const Problem problem = problem_of(std::current_exception());
    session.fail(problem.code, problem.message);
    log_error(problem.message);
    return problem.code;
  }
}

}  // namespace lancet::cli
