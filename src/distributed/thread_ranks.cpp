#include "lancet/distributed/thread_ranks.h"

#include <exception>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/runtime/host_workers.h"
#include "process_group_communicator.h"

namespace lancet {
namespace {

bool is_of_another_rank(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CollectiveError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void run_as_ranks(int64_t n, const std::function<void(Communicator&)>& body, std::chrono::milliseconds device_timeout) {
  set_environment_of_groups();
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> errors(static_cast<size_t>(n));
  Reporter& told = reporter();
  const SameThreads same_threads;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < n; ++rank)
    threads.emplace_back([&, rank] {
      const ReporterScope scope(told);
      same_threads.set();
      try {
        ProcessGroupCommunicator communicator(store, {.rank = static_cast<int>(rank),
                                                      .size = static_cast<int>(n),
                                                      .host = "this process",
                                                      .address = "127.0.0.1",
                                                      .interface = "",
                                                      .join_timeout = std::chrono::seconds(60),
                                                      .device_timeout = device_timeout});
        body(communicator);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::exception_ptr first;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    if (!is_of_another_rank(error)) std::rethrow_exception(error);
    if (!first) first = error;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace lancet
