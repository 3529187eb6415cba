// What the machine can do, measured, and the counters that relate a benchmark to it.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <functional>

#include "lancet/runtime/tensor.h"

namespace lancet::bench {

/// Waits until the device has computed `result`: kernels of a GPU run behind the caller's back.
void wait_for(const Tensor& result);

/// Wall time of `work`, which has to wait for its own results.
double seconds_of(const std::function<void()>& work);

/// FLOP/s of one [n, n] x [n, n] product, the best of several: the limit that shares are taken of. Measured once per
/// process and type.
double matmul_peak(at::Device device, at::ScalarType dtype, int64_t size);

/// Most bytes of tensors that a GPU has held at once in this process so far; 0 for the host.
double peak_device_bytes(at::Device device);

/// Work of one iteration.
struct Work {
  double tokens = 0;  ///< 0: not counted
  double flop = 0;
  double peak_flops = 0;
  double device_bytes = 0;  ///< peak_device_bytes at the end
};
/// Sets counters: rates at `seconds` an iteration, the share of the peak, the process's peak resident bytes so far.
void count(benchmark::State& state, const Work& work, double seconds);

/// Runs `work`, which waits for its own results, until Google Benchmark has enough; mean seconds of an iteration.
/// For benchmarks with UseManualTime.
double time_iterations(benchmark::State& state, const std::function<void()>& work);

}  // namespace lancet::bench
