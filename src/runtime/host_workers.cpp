#include "lancet/runtime/host_workers.h"

#include <ATen/Parallel.h>
#include <algorithm>
#include <atomic>

#include "lancet/core/parallel.h"

namespace lancet {

OneThreadEach::OneThreadEach() : before_(at::get_num_threads()) { at::set_num_threads(1); }

OneThreadEach::~OneThreadEach() { at::set_num_threads(before_); }

SameThreads::SameThreads() : threads_(at::get_num_threads()) {}

void SameThreads::set() const { at::set_num_threads(threads_); }

void run_independent(const Placement& placement, int64_t n, const std::function<void(int64_t)>& work) {
  const int64_t workers = std::min<int64_t>(n, at::get_num_threads());
  if (!placement.is_host_only() || workers <= 1) return run_overlapped(placement, n, work);
  const OneThreadEach one_thread_each;
  for_each_in_parallel(static_cast<size_t>(n), static_cast<size_t>(workers), [&](size_t i) {
    at::set_num_threads(1);  // OpenMP has its own count for each of our threads
    work(static_cast<int64_t>(i));
  });
}

int64_t pieces_at_once(const Placement& placement) {
  return placement.is_host_only() ? at::get_num_threads() : placement.batches_under_way();
}

void run_overlapped(const Placement& placement, int64_t n, const std::function<void(int64_t)>& work) {
  const int64_t workers = std::min(n, placement.batches_under_way());
  if (workers <= 1) {
    for (int64_t i = 0; i < n; ++i) work(i);
    return;
  }
  const SameThreads same_threads;
  for_each_in_parallel(static_cast<size_t>(n), static_cast<size_t>(workers), [&](size_t i) {
    same_threads.set();
    work(static_cast<int64_t>(i));
  });
}

void StageTurn::enter(int64_t stage) {
  if (stage < left_below_) return;
  leave_below(stage);
  std::unique_lock lock(turns_.mutex_);
  wait_for(lock, stage);
}

void StageTurn::wait_for(std::unique_lock<std::mutex>& lock, int64_t stage) {
  turns_.left_.wait(lock, [&] { return turns_.next_[static_cast<size_t>(stage)] == piece_; });
}

void StageTurn::leave_below(int64_t stage) {
  std::unique_lock lock(turns_.mutex_);
  for (; left_below_ < stage; ++left_below_) {
    wait_for(lock, left_below_);  // this stage was skipped
    ++turns_.next_[static_cast<size_t>(left_below_)];
  }
  turns_.left_.notify_all();
}

int64_t run_in_turns(const Placement& placement, int64_t begin, int64_t end,
                     const std::function<void(int64_t piece, StageTurn& turn)>& work,
                     const std::function<bool()>& pause) {
  StageTurns turns(static_cast<int64_t>(placement.stages().size()), begin);
  std::atomic<int64_t> next{begin};
  const int64_t workers = std::min(placement.batches_under_way(), end - begin);
  const int threads = at::get_num_threads();
  // A piece that was taken must run, because later pieces wait for its turns.
  const auto run_some = [&](size_t) {
    if (workers > 1) at::set_num_threads(threads);  // OpenMP has its own count for each of our threads
    for (int64_t piece = 0; (piece = next.load()) < end;) {
      if (!next.compare_exchange_weak(piece, piece + 1)) continue;
      try {
        StageTurn turn(turns, piece);
        turn.enter(0);
        work(piece, turn);
      } catch (...) {
        next = end;
        throw;
      }
      if (pause && pause()) return;
    }
  };
  if (workers <= 1) {
    run_some(0);
    return next;
  }
  for_each_in_parallel(static_cast<size_t>(workers), static_cast<size_t>(workers), run_some);
  return next;
}

}  // namespace lancet
