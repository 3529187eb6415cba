// What ranks (and launchers) tell each other through the job's store beside their collectives: that they are here, that
// they are alive and get on, that one has failed, that they are done.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "lancet/distributed/rank_session.h"

namespace lancet {

struct RankPresence {
  std::string host;
  std::string address;  ///< address of its network interface
};

struct RankBeat {
  int64_t tick = 0;      ///< another one with every beat: the process lives
  int64_t progress = 0;  ///< Reporter::steps(): its work gets on
  bool is_waiting = false;
  std::string stage;
};

struct RankFailure {
  int64_t rank = 0;
  std::string host;
  std::string stage;
  std::string what;   ///< "failed: <message>", "ended by signal 9 (Killed)", "made no progress for 1800 s"
  int exit_code = 0;  ///< code from failure_code() in the store
};

/// "rank 1 on node7, stage 'values': ended by signal 9 (Killed)".
std::string to_text(const RankFailure& failure);

/// What a process can end with that failed: `code` where it is from 1 to 255, else 6, so never that all went well.
int failure_code(int64_t code);

enum class JobEnd { kDone, kFailed };

/// Every function may throw c10::Error when the store is gone, and ForeignValue where somebody else wrote into it.
class RankBoard {
 public:
  explicit RankBoard(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}
  /// Makes a board with a connection of its own, for another thread.
  RankBoard clone() const { return RankBoard(store_->clone()); }
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  /// False: another process is this rank already.
  bool claim(int64_t rank, const RankPresence& presence);
  /// nullopt: has not come yet.
  std::optional<RankPresence> presence(int64_t rank);

  void beat(int64_t rank, const RankBeat& beat);
  /// Returns the last beat of a rank that is here.
  RankBeat last_beat(int64_t rank);
  /// Returns the last beats of all ranks; all are here.
  std::vector<RankBeat> last_beats(int64_t size);

  /// The first failure stays, if it is a rank's: what somebody else wrote in its place is overwritten, and not read.
  void fail(const RankFailure& failure);
  std::optional<RankFailure> failure();

  /// Counts the ranks that need the store no more.
  void leave() { store_->add("left", 1); }
  /// Waits until `n` have left: for whoever serves the store. Not for long, since who was killed never leaves; after a
  /// failure even less.
  void wait_until_left(int64_t n, JobEnd end);

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

/// A connection to the store that `launch` names; serves it too where that is this rank's, on the loopback interface
/// alone where the address is there.
/// Throws: CollectiveError when there is none within `timeout`.
c10::intrusive_ptr<c10d::Store> open_store(const LaunchInfo& launch, std::chrono::milliseconds timeout);

/// A store served by this process, likewise. `port` 0: any free one. Throws: CollectiveError when the port is in use.
struct ServedStore {
  c10::intrusive_ptr<c10d::Store> store;
  int64_t port = 0;
};
ServedStore serve_store(const std::string& address, int64_t port);

/// The part of a store that one start of a job has for itself. `secret`: of the job, without which nobody writes into
/// it what its ranks take for theirs; empty: everybody who connects can.
c10::intrusive_ptr<c10d::Store> attempt_store(const c10::intrusive_ptr<c10d::Store>& store, const std::string& attempt,
                                              const std::string& secret);

}  // namespace lancet
