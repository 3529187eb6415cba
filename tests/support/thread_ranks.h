// Ranks as threads of one process, for tests. What is no protocol of equals is an error of its own: ranks that call
// different collectives, a rank that leaves while others wait, a wait without end.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "lancet/runtime/communicator.h"

namespace lancet::testing {

/// A rank that fails as it begins its own work of a stage.
struct Fault {
  int64_t rank = -1;
  std::string stage;
};

inline constexpr const char* kFaultMessage = "the disk is on fire";

/// What a rank threw; null: nothing.
using RankErrors = std::vector<std::exception_ptr>;

/// Runs `work` on `size` ranks. Returns when all have ended.
RankErrors try_ranks(int64_t size, const std::function<void(Communicator&)>& work, const Fault& fault = {});

/// Runs likewise; throws what the first rank threw, if any did.
void run_ranks(int64_t size, const std::function<void(Communicator&)>& work);

/// "" for null.
std::string message_of(const std::exception_ptr& error);

}  // namespace lancet::testing
