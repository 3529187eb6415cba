// The choices of a job about how it runs, shared by the code that reads the job and the code that runs it.
#pragma once

#include <cstdint>

namespace lancet {

/// Where second moments, factors and solves are, and the exact copies of edited weights.
enum class SolveOn {
  kAuto,    ///< devices, unless they are too small
  kDevice,  ///< each on the device of its layer
  kHost
};

/// How repeated steps are launched on a device.
enum class LaunchMode {
  kEachOperation,
  kGraph  ///< all operations of a step at once (a CUDA graph)
};

/// The place of a process among the ranks on this host.
struct HostShare {
  int64_t rank = 0;
  int64_t size = 1;
};

}  // namespace lancet
