// `lancet launch`: the ranks of a job on this host.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/distributed/launcher.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

std::string either(std::vector<std::string> names) {
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : cat(join(names), " or ", last);
}

ExitCode run_launch(LaunchOptions options, const std::vector<std::string>& commands) {
  stderr_reporter().set_error_prefix("lancet launch: error: ");
  const std::string& command = options.arguments.front();
  if (std::find(commands.begin(), commands.end(), command) == commands.end())
    throw ConfigError(
        cat("'", command, "': expected a command that several processes can share after --: ", either(commands)));
  options.program = std::filesystem::read_symlink("/proc/self/exe");
  log_line(cat("lancet launch: each rank's output: ",
               (std::filesystem::absolute(options.log_dir) / "rank-N.log").lexically_normal().string()));
  const LaunchOutcome outcome = launch_ranks(options);
  if (outcome.interrupted_by != 0) {
    if (!outcome.rank_0_spoke)
      log_error(cat("stopped by ", stop_signal_name(outcome.interrupted_by), "; all ranks are ended"));
    std::signal(outcome.interrupted_by, SIG_DFL);
    std::raise(outcome.interrupted_by);  // whoever started this one sees why it ended
  }
  if (!outcome.failure.empty()) log_error(outcome.failure);
  return outcome.code;
}

}  // namespace

void add_launch(CLI::App& app, Action& action) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App& command = add_command(
      app, "launch",
      "Run a job as several processes, which share its work.\n"
      "  lancet launch -n 4 -- edit job.yaml\n"
      "  on each of two hosts: lancet launch -n 4 --nodes 2 --node-rank 0 --master host0:29500 -- edit job.yaml");
  add_option(command, "-n,--ranks", options->local_ranks, "Number of processes on each host")
      .required()
      .between(1, 4096);
  add_option(command, "--nodes", options->nodes, "Number of hosts; run this command on each of them")
      .between(1, 100000);
  add_option(command, "--node-rank", options->node_rank, "Number of this host, from 0");
  add_option(command, "--master", options->master,
             "HOST:PORT at which all hosts reach host 0; the port must be free there");
  add_option(command, "--log-dir", options->log_dir, "Folder for rank-0.log, rank-1.log, ...")
      .type("DIR")
      .shows_default();
  add_option(command, "command", options->arguments, "After --: one of the commands below, with its arguments")
      .required();
  // made when it is shown: by then all commands have been added
  set_footer(command,
             [&app] { return cat("Commands that run as several processes: ", join(commands_on_ranks(app)), "."); });
  on_choice(command, action, [=, &app] { return run_launch(*options, commands_on_ranks(app)); });
}

}  // namespace lancet::cli
