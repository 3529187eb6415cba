#include "lancet/runtime/host_workers.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

namespace lancet {

void run_independent(const Placement& placement, int64_t n, const std::function<void(int64_t)>& work) {
  const int64_t workers = placement.is_host_only() ? std::min<int64_t>(n, at::get_num_threads()) : 1;
  std::atomic<int64_t> next = 0;
  const auto take_turns = [&] {
    try {
      for (int64_t i = next++; i < n; i = next++) work(i);
    } catch (...) {
      next = n;
      throw;
    }
  };
  if (workers <= 1) return take_turns();
  // Inside a parallel region torch and the matrix library run on one thread each.
  at::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) take_turns();
  });
}

}  // namespace lancet
