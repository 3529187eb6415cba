// A pipeline through a model's stages: several pieces of work are under way at a time, each on another stage, so that
// the devices work side by side.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "lancet/runtime/placement.h"

namespace lancet {

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
