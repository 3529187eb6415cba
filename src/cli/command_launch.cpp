// `lancet launch`: the ranks of a job on this host.
#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/distributed/launcher.h"

namespace lancet::cli {
namespace {

constexpr std::array<const char*, 3> kCommands{"edit", "eval", "stats"};

ExitCode run_launch(LaunchOptions options) {
  if (std::find(kCommands.begin(), kCommands.end(), options.arguments.front()) == kCommands.end())
    throw ConfigError(cat("lancet launch: '", options.arguments.front(),
                          "': expected a command that several processes can share after --: edit, eval or stats"));
  options.program = std::filesystem::read_symlink("/proc/self/exe");
  const LaunchOutcome outcome = launch_ranks(options);
  if (outcome.interrupted_by != 0) {
    std::cerr << "lancet launch: interrupted; all ranks are ended\n";
    std::signal(outcome.interrupted_by, SIG_DFL);
    std::raise(outcome.interrupted_by);  // whoever started this one sees why it ended
  }
  if (!outcome.failure.empty()) std::cerr << "lancet launch: error: " << outcome.failure << "\n";
  return outcome.code;
}

}  // namespace

void add_launch(CLI::App& app, Action& action) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* command = app.add_subcommand(
      "launch",
      "Run a job as several processes, which share its requests and documents.\n"
      "  lancet launch -n 4 -- edit job.yaml\n"
      "  on each of two hosts: lancet launch -n 4 --nodes 2 --node-rank 0 --master host0:29500 -- edit job.yaml");
  command->add_option("-n,--ranks", options->local_ranks, "Processes on this host, and on every other")
      ->required()
      ->check(CLI::Range(1, 4096));
  command->add_option("--nodes", options->nodes, "Hosts; this command is run on each")->check(CLI::Range(1, 100000));
  command->add_option("--node-rank", options->node_rank, "This host's number, from 0");
  command->add_option("--master", options->master, "HOST:PORT of host 0, as all hosts reach it; a free port there");
  command->add_option("--log-dir", options->log_dir, "Folder for rank-0.log, rank-1.log, ...")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("command", options->arguments, "After --: edit, eval or stats with its arguments")->required();
  command->callback([=, &action] { action = [=] { return run_launch(*options); }; });
}

}  // namespace lancet::cli
