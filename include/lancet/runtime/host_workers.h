// Independent pieces of work, several at a time: on the host's cores, or so that each stage of a model has something to
// do. A chain of small operations split over threads waits at each of them; one chain per thread never does, and its
// activations stay in that core's cache.
#pragma once

#include <cstdint>
#include <functional>

#include "lancet/runtime/placement.h"

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

}  // namespace lancet
