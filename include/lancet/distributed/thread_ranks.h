// Ranks as threads of one process, for tests: the collectives are the ones that processes use.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "lancet/runtime/communicator.h"

namespace lancet {

/// Runs `body` on `n` threads, each with a communicator of its own: the ranks of one job. A rank that leaves with an
/// exception, or without taking part in a collective, ends those that wait for it with CollectiveError, and so does an
/// operation on GPUs that takes longer than `device_timeout`.
/// Throws: the first error by rank that is no CollectiveError, else the first one, when all have ended.
void run_as_ranks(int64_t n, const std::function<void(Communicator&)>& body,
                  std::chrono::milliseconds device_timeout = std::chrono::seconds(60));

}  // namespace lancet
