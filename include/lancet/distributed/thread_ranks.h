// Runs ranks as threads of one process, for tests. The collectives are the same as between processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "lancet/runtime/communicator.h"

namespace lancet {

/// Runs `body` on `n` threads, each with a communicator of its own, as the ranks of one job. If a rank ends with an
/// exception, or returns without taking part in a collective, the ranks that wait for it end with CollectiveError. So
/// does an operation on GPUs that takes longer than `device_timeout`. When all ranks have ended, throws: the first
/// error by rank that is not a CollectiveError, else the first error.
void run_as_ranks(int64_t n, const std::function<void(Communicator&)>& body,
                  std::chrono::milliseconds device_timeout = std::chrono::seconds(60));

}  // namespace lancet
