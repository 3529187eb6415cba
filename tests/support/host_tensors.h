// Counts what torch's tensors take of the host's memory, of all threads.
#pragma once

#include <cstdint>
#include <functional>

namespace lancet::testing {

/// The most that tensors took while `work` ran, above what there was before.
int64_t host_tensors_peak(const std::function<void()>& work);

}  // namespace lancet::testing
