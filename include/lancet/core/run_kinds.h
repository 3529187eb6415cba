// What a job chooses of how it is run, for those who read it and those who run it.
#pragma once

#include <cstdint>

namespace lancet {

/// Place of second moments, factors and solves, and of edited weights as they are exactly.
enum class SolveOn {
  kAuto,    ///< devices, unless they are too small
  kDevice,  ///< each with its layer
  kHost
};

/// How steps that repeat are launched on a device.
enum class LaunchMode {
  kEachOperation,
  kGraph  ///< all of a step at once
};

/// Which of the ranks on this host a process is.
struct HostShare {
  int64_t rank = 0;
  int64_t size = 1;
};

}  // namespace lancet
