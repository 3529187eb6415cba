#include "lancet/runtime/host_workers.h"

#include <ATen/Parallel.h>

#include <algorithm>

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
    at::set_num_threads(1);  // OpenMP counts for each thread of ours apart
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

}  // namespace lancet
