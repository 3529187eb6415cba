// Starts the ranks of a job on this host, serves the store they meet in, and sees to it that they end together.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lancet/core/error.h"

namespace lancet {

struct LaunchOptions {
  int64_t local_ranks = 1;  ///< ranks on this host; as many on every other
  int64_t nodes = 1;        ///< hosts of the job, each with a launcher of its own
  int64_t node_rank = 0;    ///< this host's number; host 0 has rank 0 and serves the store
  std::string master;       ///< HOST:PORT of host 0, where nodes > 1
  std::filesystem::path log_dir{"logs"};
  std::filesystem::path program;       ///< what every rank runs
  std::vector<std::string> arguments;  ///< arguments without the program's own name
};

struct LaunchOutcome {
  ExitCode code = ExitCode::kOk;  ///< the first failure's
  int interrupted_by = 0;         ///< a signal to the launcher that ended the job; 0: none
  bool rank_0_spoke = false;      ///< then: it said so itself, here on the terminal
  /// Which rank failed first, where, in which stage, how, and its log; empty when none did.
  std::string failure;
};

/// Runs `program` `arguments` as `local_ranks` processes and returns when all have ended. Rank r writes
/// <log_dir>/rank-r.log; rank 0's output appears here too. When one fails the others get some seconds to end, then
/// SIGTERM, then SIGKILL. When this process gets SIGINT, SIGTERM or SIGHUP so do they, then SIGKILL; when it dies,
/// SIGKILL. The code is 0 only if every rank's is. Not from several threads.
/// Throws: ConfigError for options that contradict each other, logs that cannot be written, or several hosts without a
/// secret (kSecretVariable); CollectiveError when the
/// store cannot be served; Error when a process cannot be started.
LaunchOutcome launch_ranks(const LaunchOptions& options);

}  // namespace lancet
