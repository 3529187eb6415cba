// Starts the ranks of a job on this host, serves the store in which they meet, and makes sure that they end together.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lancet/core/error.h"

namespace lancet {

struct LaunchOptions {
  int64_t local_ranks = 1;  ///< ranks on this host; every other host has the same number
  int64_t nodes = 1;        ///< hosts of the job, each with a launcher of its own
  int64_t node_rank = 0;    ///< this host's number; host 0 has rank 0 and serves the store
  std::string master;       ///< HOST:PORT of host 0, if nodes > 1
  std::filesystem::path log_dir{"logs"};
  std::filesystem::path program;       ///< the program that every rank runs
  std::vector<std::string> arguments;  ///< arguments without the program's own name
};

struct LaunchOutcome {
  ExitCode code = ExitCode::kOk;  ///< exit code of the first failure
  int interrupted_by = 0;         ///< the signal to the launcher that ended the job; 0: none
  bool rank_0_spoke = false;      ///< after such a signal: whether rank 0 reported the end itself, here on the terminal
  /// Which rank failed first, on which host, in which stage and how, and its log; empty if none failed.
  std::string failure;
};

/// Runs `program` `arguments` as `local_ranks` processes and returns when all have ended. Rank r writes
/// <log_dir>/rank-r.log; rank 0's output is also shown here. If one rank fails, the others get some seconds to end,
/// then SIGTERM, then SIGKILL. If this process gets SIGINT, SIGTERM or SIGHUP, it passes the signal on to the ranks,
/// then sends SIGKILL. If this process dies, the ranks get SIGKILL. The code is 0 only if every rank's is. Do not call
/// it from several threads. Throws: ConfigError for options that contradict each other, logs that cannot be written, or
/// several hosts without a secret (kSecretVariable); CollectiveError if the store cannot be served; Error if a process
/// cannot be started.
LaunchOutcome launch_ranks(const LaunchOptions& options);

}  // namespace lancet
