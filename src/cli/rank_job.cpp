// Commands that several processes can run together.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "commands.h"
#include "lancet/core/stderr_reporter.h"
#include "lancet/core/strings.h"
#include "lancet/pipeline/kept_work.h"
#include "stop_signals.h"

namespace lancet::cli {
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
      .add_option(kLauncherOption, ranks.launcher,
                  "Whose variables say which rank of a job of several processes this is; none: a job of its own")
      ->transform(CLI::CheckedTransformer(kLaunchers).description(""))
      ->type_name("{auto,none,torchrun,slurm,openmpi}")
      ->default_str("auto");
  command.add_option("--join-timeout", ranks.join_timeout_s, "Seconds to wait for all ranks of the job to come")
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
  if (shares_terminal) set_stop_words([] { return std::nullopt; });  // rank 0 says it
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
