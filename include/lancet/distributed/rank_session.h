// One process's part in a job of several: joining, the communicator, the watch over the others, leaving.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lancet/core/error.h"
#include "lancet/distributed/launch_info.h"
#include "lancet/runtime/communicator.h"
#include "lancet/runtime/devices.h"

namespace lancet {

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
