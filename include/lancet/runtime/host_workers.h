// Independent pieces of work, several at a time: on the host's cores, or so that each stage of a model has something to
// do. A chain of small operations split over threads waits at each of them; one chain per thread never does, and its
// activations stay in that core's cache.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "lancet/runtime/devices.h"

namespace lancet {

/// Torch and the matrix library on one thread each, for this thread until the end of the scope.
class OneThreadEach {
 public:
  OneThreadEach();
  ~OneThreadEach();
  OneThreadEach(const OneThreadEach&) = delete;
  OneThreadEach& operator=(const OneThreadEach&) = delete;

 private:
  int before_;
};

/// Torch's number of threads where this is made, for threads that are started there. Each sets it before its first
/// product: one that does not takes the number that any thread set last, which is 1 while another one is within
/// run_independent(), and leaves the choice to the matrix library until anybody sets one. Either changes last bits.
class SameThreads {
 public:
  SameThreads();
  /// Sets the number for the thread that calls it.
  void set() const;

 private:
  int threads_;
};

/// Calls work(0) ... work(n - 1), each once, in ascending order of beginning. Where the whole model lies on the host,
/// several run at a time, as many as torch has threads, and the operations inside of each use one thread; elsewhere as
/// run_overlapped. `work` must not depend on the order. After an exception no new piece begins, and the first one
/// is thrown on when all have ended.
void run_independent(const Placement& placement, int64_t n, const std::function<void(int64_t)>& work);

/// Runs the pieces likewise, as many at a time as the placement has batches under way: one, where the model is one
/// stage.
void run_overlapped(const Placement& placement, int64_t n, const std::function<void(int64_t)>& work);

/// How many pieces run_independent() has under way at a time, if there are as many.
int64_t pieces_at_once(const Placement& placement);

// A pipeline through a model's stages: several pieces of work are under way at a time, each on another stage, so that
// the devices work side by side.

/// The order at the stages' doors: piece i enters a stage when piece i - 1 has left it. So a stage holds one piece at a
/// time, and works on the pieces in their order.
class StageTurns {
 public:
  StageTurns(int64_t n_stages, int64_t first_piece) : next_(static_cast<size_t>(n_stages), first_piece) {}

 private:
  friend class StageTurn;
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<int64_t> next_;  ///< piece that may enter each stage
};

/// One piece's way through the stages, from the first to the last. It leaves the last when it goes out of scope, also
/// after an error, so that nobody waits for it. Used by one thread.
class StageTurn {
 public:
  StageTurn(StageTurns& turns, int64_t piece) : turns_(turns), piece_(piece) {}
  ~StageTurn() { leave_below(static_cast<int64_t>(turns_.next_.size())); }
  StageTurn(const StageTurn&) = delete;
  StageTurn& operator=(const StageTurn&) = delete;

  /// Leaves the stages before, and waits until `stage` is free. No effect where the piece has been already.
  void enter(int64_t stage);

 private:
  void wait_for(std::unique_lock<std::mutex>& lock, int64_t stage);
  void leave_below(int64_t stage);

  StageTurns& turns_;
  int64_t piece_;
  int64_t left_below_ = 0;  ///< stages that the piece has left
};

/// Calls work(i, turn) for pieces begin, begin + 1, ..., each in its turn on the model's first stage; run_layers, told
/// of the turn (SequenceInfo::turn), takes it to the others. As many are under way as the placement says; with one, no
/// thread is started. Ends before piece `end`, or earlier when `pause` says so after a piece: returns the first piece
/// that has not run. After an error no new piece begins, and the first error is thrown on when all have ended.
int64_t run_in_turns(const Placement& placement, int64_t begin, int64_t end,
                     const std::function<void(int64_t piece, StageTurn& turn)>& work,
                     const std::function<bool()>& pause = {});

}  // namespace lancet
