// Runs independent pieces of work, several at a time: on the host's cores, or so that each stage of a model is busy. If
// threads share a chain of small operations, they wait for each other at each operation. If each thread has a chain of
// its own, it never waits, and its activations stay in the core's cache.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "lancet/runtime/devices.h"

namespace lancet {

/// Sets torch and the matrix library to one thread for the calling thread, until the end of the scope.
class OneThreadEach {
 public:
  OneThreadEach();
  ~OneThreadEach();
  OneThreadEach(const OneThreadEach&) = delete;
  OneThreadEach& operator=(const OneThreadEach&) = delete;

 private:
  int before_;
};

/// Torch's number of threads where this object is made, for threads that are started there. Each thread must call set()
/// before its first product. Otherwise it takes the number that any thread set last, which is 1 while another thread is
/// within run_independent(), and it leaves the choice to the matrix library until any thread sets a number. Either
/// changes the last bits of results.
class SameThreads {
 public:
  SameThreads();
  /// Sets the number of threads for the calling thread.
  void set() const;

 private:
  int threads_;
};

/// Calls work(0) ... work(n - 1), each once, started in ascending order. If the whole model is on the host, as many
/// calls run at a time as torch has threads, and the operations inside each call use one thread; otherwise as
/// run_overlapped(). `work` must not depend on the order. After an exception no new piece starts, and the first
/// exception is rethrown when all pieces have ended.
void run_independent(const Placement& placement, int64_t n, const std::function<void(int64_t)>& work);

/// Runs the pieces like run_independent(), with as many at a time as the placement has batches in flight: one if the
/// model is a single stage.
void run_overlapped(const Placement& placement, int64_t n, const std::function<void(int64_t)>& work);

/// Returns the most pieces that run_independent() runs at a time.
int64_t pieces_at_once(const Placement& placement);

// A pipeline through a model's stages: several pieces of work are in flight, each on another stage, so that the devices
// work in parallel.

/// The order in which pieces enter the stages: piece i enters a stage when piece i - 1 has left it. So a stage holds
/// one piece at a time and processes the pieces in order.
class StageTurns {
 public:
  StageTurns(int64_t n_stages, int64_t first_piece) : next_(static_cast<size_t>(n_stages), first_piece) {}

 private:
  friend class StageTurn;
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<int64_t> next_;  ///< next piece that may enter each stage
};

/// One piece's way through the stages, from the first to the last. Its destructor leaves the last stage, also after an
/// error, so that no other piece waits for it. Used by one thread.
class StageTurn {
 public:
  StageTurn(StageTurns& turns, int64_t piece) : turns_(turns), piece_(piece) {}
  ~StageTurn() { leave_below(static_cast<int64_t>(turns_.next_.size())); }
  StageTurn(const StageTurn&) = delete;
  StageTurn& operator=(const StageTurn&) = delete;

  /// Leaves the stages before `stage`, and waits until `stage` is free. No effect if the piece has already been there.
  void enter(int64_t stage);

 private:
  void wait_for(std::unique_lock<std::mutex>& lock, int64_t stage);
  void leave_below(int64_t stage);

  StageTurns& turns_;
  int64_t piece_;
  int64_t left_below_ = 0;  ///< number of stages that the piece has left
};

/// Calls work(i, turn) for pieces begin, begin + 1, ..., each in its turn on the model's first stage. run_layers()
/// takes the turn (SequenceInfo::turn) to the other stages. The placement determines how many pieces are in flight;
/// with one, no thread is started. It ends before piece `end`, or earlier if `pause` returns true after a piece, and
/// returns the first piece that has not run. After an error no new piece starts, and the first error is rethrown when
/// all pieces have ended.
int64_t run_in_turns(const Placement& placement, int64_t begin, int64_t end,
                     const std::function<void(int64_t piece, StageTurn& turn)>& work,
                     const std::function<bool()>& pause = {});

}  // namespace lancet
