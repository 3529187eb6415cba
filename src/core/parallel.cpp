#include "lancet/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <vector>

#include "lancet/core/reporter.h"

namespace lancet {

void for_each_in_parallel(size_t count, size_t most_threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        next = count;
        throw;
      }
    }
  };
  const auto help = [&run, &told = reporter()] {
    const ReporterScope scope(told);
    run();
  };
  std::vector<std::future<void>> helpers;  // their destructors wait
  for (size_t i = 1; i < std::min(count, most_threads); ++i) helpers.push_back(std::async(std::launch::async, help));
  run();
  for (std::future<void>& helper : helpers) helper.get();
}

}  // namespace lancet
