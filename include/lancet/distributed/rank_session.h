// One process's part in a job of several: joining, the communicator, the watch over the others, leaving.
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

// Who this process is among the ranks of its job, as whatever started it says in the environment.

/// Which variables count. kAuto: the first of torchrun's, Slurm's and OpenMPI's (or PMI's) that are there.
enum class Launcher { kAuto, kNone, kTorchrun, kSlurm, kOpenMpi };

/// Variable with the job's secret: what its ranks write into the store that they meet in carries a tag of it. Equal on
/// all ranks.
inline constexpr const char* kSecretVariable = "LANCET_SECRET";

/// Who serves the store through which ranks find each other.
enum class StoreHost { kRankZero, kAgent };

struct LaunchInfo {
  int64_t rank = 0;
  int64_t size = 1;
  int64_t local_rank = 0;  ///< rank among those on this host
  int64_t local_size = 1;
  std::string address;  ///< address of the store, where size > 1
  int64_t port = 0;
  StoreHost store_host = StoreHost::kRankZero;
  std::string secret;            ///< kSecretVariable; empty: none
  std::string attempt;           ///< equal on all ranks of one start of the job, another one on a restart
  std::string interface;         ///< GLOO_SOCKET_IFNAME: the network interface to use; empty: the one to `address`
  std::string launcher{"none"};  ///< name for messages
  bool has_own_log = false;      ///< what this rank prints is kept apart from the others'
};

using Environment = std::map<std::string, std::string>;

/// Pure. A job of one process where nothing, or a world of one rank, is announced.
/// Throws: ConfigError naming the variable that is missing, no number, or contradicts another.
LaunchInfo read_launch(const Environment& environment, Launcher launcher);

/// The variables of this process.
Environment process_environment();

/// "node01" of Slurm's "node[01-04,7],other".
std::string first_host(const std::string& node_list);

class RankSession {
 public:
  /// A job of one process joins nobody and is not watched. `join_timeout`: for all ranks to come.
  /// Throws: CollectiveError naming the ranks that did not come, or what keeps ranks from reaching each other.
  RankSession(const LaunchInfo& launch, std::chrono::seconds join_timeout);
  /// Leaves; where this process serves the store, first waits some seconds for the others to leave.
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  Communicator& communicator();
  /// Returns this rank's place among the ranks on this host.
  HostShare on_host() const;

  /// A rank whose work makes no progress for `timeout` is ended, and with it the job. Before this call:
  /// for `join_timeout`.
  void set_timeout(std::chrono::seconds timeout);

  /// This rank ends with an error, which it tells the user itself: the others hear of it (but not where the error is
  /// that another failed), and the process ends even if its cleaning up does not.
  void fail(ExitCode code, const std::string& message);

 private:
  struct Group;
  std::unique_ptr<Group> group_;  ///< null: one process
  SingleProcess single_;
};

}  // namespace lancet
