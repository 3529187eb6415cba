// What a device does while something runs, as torch's profiler (kineto) records it. Times are of a profiled run, which
// is slower than others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace lancet::bench {

/// Launches of one name.
struct Launches {
  double count = 0;
  double ms = 0;
};

struct DeviceActivity {
  double kernels = 0;
  double copies = 0;  ///< and fills of memory
  double busy_s = 0;  ///< time in which at least one of them ran
  std::map<std::string, Launches> by_name;
};

/// What `work` asks of devices; it has to wait for them.
DeviceActivity profile(const std::function<void()>& work);

/// A `divisor`th of what `more` has beyond `less`.
DeviceActivity difference(const DeviceActivity& more, const DeviceActivity& less, double divisor);

/// Tells on stderr what took the most time, by name.
void print_slowest(std::string_view title, const DeviceActivity& activity);

}  // namespace lancet::bench
