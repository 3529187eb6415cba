// What ranks and launchers tell each other through the job's store, in addition to collectives: that they are there,
// that they are alive and make progress, that one has failed, that they are finished.
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
  int64_t tick = 0;      ///< changes with every beat: the process lives
  int64_t progress = 0;  ///< Reporter::steps(): the work makes progress
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

/// Returns "rank 1 on node7, stage 'values': ended by signal 9 (Killed)".
std::string to_text(const RankFailure& failure);

/// Returns an exit code for a failed process: `code` if it is from 1 to 255, else 6. So it never means success.
int failure_code(int64_t code);

enum class JobEnd { kDone, kFailed };

/// Every function may throw c10::Error if the store is gone, and ForeignValue if somebody else has written into it.
class RankBoard {
 public:
  explicit RankBoard(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}
  /// Returns a board with its own connection, for another thread.
  RankBoard clone() const { return RankBoard(store_->clone()); }
  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }

  /// Returns false if another process already is this rank.
  bool claim(int64_t rank, const RankPresence& presence);
  /// Returns nullopt if the rank has not come yet.
  std::optional<RankPresence> presence(int64_t rank);

  void beat(int64_t rank, const RankBeat& beat);
  /// Returns the last beat of a rank that has come.
  RankBeat last_beat(int64_t rank);
  /// Returns the last beats of all ranks, which must all have come.
  std::vector<RankBeat> last_beats(int64_t size);

  /// Reports a failure. Only the first one is kept. A value that somebody else wrote in its place is overwritten, and
  /// not read.
  void fail(const RankFailure& failure);
  std::optional<RankFailure> failure();

  /// Counts the ranks that no longer need the store.
  void leave() { store_->add("left", 1); }
  /// Waits until `n` ranks have left. For the process that serves the store. It waits only for a short time, because a
  /// killed rank never leaves; after a failure it waits even less.
  void wait_until_left(int64_t n, JobEnd end);

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

/// Returns a connection to the store that `launch` names. If this rank has to serve the store, it also does that, and
/// only on the loopback interface if the address is there. Throws: CollectiveError if there is no connection within
/// `timeout`.
c10::intrusive_ptr<c10d::Store> open_store(const LaunchInfo& launch, std::chrono::milliseconds timeout);

/// A store that this process serves, as in open_store(). `port`: 0 for any free one. Throws: CollectiveError if the
/// port is in use.
struct ServedStore {
  c10::intrusive_ptr<c10d::Store> store;
  int64_t port = 0;
};
ServedStore serve_store(const std::string& address, int64_t port);

/// Returns the part of a store that belongs to one start of a job. `secret`: the job's secret, without which nobody can
/// write values that its ranks accept; empty: everybody who connects can.
c10::intrusive_ptr<c10d::Store> attempt_store(const c10::intrusive_ptr<c10d::Store>& store, const std::string& attempt,
                                              const std::string& secret);

}  // namespace lancet
