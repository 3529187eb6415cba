// The part of one process in a job of several ranks: it joins, has the communicator, watches the other ranks, and
// leaves.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "lancet/core/error.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"

namespace lancet {

// The place of this process among the ranks of its job, read from the environment that the launcher set.

/// The environment variables to read. kAuto: the first of torchrun's, Slurm's and OpenMPI's (or PMI's) that are set.
enum class Launcher { kAuto, kNone, kTorchrun, kSlurm, kOpenMpi };

/// The variable with the job's secret, equal on all ranks. What ranks write into their common store carries a tag
/// computed from it.
inline constexpr const char* kSecretVariable = "LANCET_SECRET";

/// Who serves the store in which ranks find each other.
enum class StoreHost { kRankZero, kAgent };

struct LaunchInfo {
  int64_t rank = 0;
  int64_t size = 1;
  int64_t local_rank = 0;  ///< rank among the ranks on this host
  int64_t local_size = 1;
  std::string address;  ///< address of the store, if size > 1
  int64_t port = 0;
  StoreHost store_host = StoreHost::kRankZero;
  std::string secret;   ///< kSecretVariable; empty: none
  std::string attempt;  ///< equal on all ranks of one start of the job, different after a restart
  /// GLOO_SOCKET_IFNAME: the network interface to use; empty: the interface that reaches `address`.
  std::string interface;
  std::string launcher{"none"};  ///< the launcher's name, for messages
  bool has_own_log = false;      ///< whether this rank's output goes to a log of its own
};

using Environment = std::map<std::string, std::string>;

/// Pure. Returns a job of one process if the environment announces no job, or a world of one rank. Throws: ConfigError
/// naming the variable that is missing, is not a number, or contradicts another variable.
LaunchInfo read_launch(const Environment& environment, Launcher launcher);

/// Returns the environment variables of this process.
Environment process_environment();

/// Returns the first host of a Slurm node list: "node01" of "node[01-04,7],other".
std::string first_host(const std::string& node_list);

class RankSession {
 public:
  /// Joins the job. A job of one process joins nobody and is not watched. `join_timeout`: how long to wait for all
  /// ranks. Throws: CollectiveError naming the ranks that did not join, or what prevents ranks from reaching each
  /// other.
  RankSession(const LaunchInfo& launch, std::chrono::seconds join_timeout);
  /// Leaves the job. If this process serves the store, it first waits some seconds for the others to leave.
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  Communicator& communicator();
  /// Returns this rank's place among the ranks on this host.
  HostShare on_host() const;

  /// Sets how long a rank may make no progress before it is ended, and the job with it. Before this call the limit is
  /// `join_timeout`.
  void set_timeout(std::chrono::seconds timeout);

  /// Announces that this rank ends with an error, which the rank reports to the user itself. The other ranks are told,
  /// unless the error is that another rank failed. The process ends even if its cleanup hangs.
  void fail(ExitCode code, const std::string& message);

 private:
  struct Group;
  std::unique_ptr<Group> group_;  ///< null: one process
  SingleProcess single_;
};

}  // namespace lancet
