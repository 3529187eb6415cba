#include "lancet/doctor/rates.h"

#include <torch/types.h>

#include <chrono>

#include "lancet/distributed/thread_ranks.h"
#include "lancet/kernels/linear.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/memory.h"
#include "timing.h"

namespace lancet {
namespace {

constexpr int64_t kBlockBytes = int64_t{256} << 20;

CopyRate measure_copy(const Tensor& from, const Tensor& to) {
  const auto copy = [&] {
    to.copy_(from, /*non_blocking=*/true);
    wait_for(from.device());
    wait_for(to.device());
  };
  return {from.device().str(), to.device().str(), static_cast<double>(kBlockBytes) * rate(copy, 0.05)};
}

/// Measures products of square matrices, in operations per second.
double product_rate(at::ScalarType dtype, int64_t size, double seconds) {
  const Tensor a = torch::ones({size, size}, dtype), b = torch::ones({size, size}, dtype);
  const double operations = 2.0 * static_cast<double>(size * size * size);
  return operations * rate([&] { linear_of(a, b); }, seconds);
}

/// Measures small matrices: a slow machine is slow with them, too, and large ones would take seconds.
double product_rate(at::ScalarType dtype) {
  const double small = product_rate(dtype, 256, 0.02);
  return small < 10e9 ? small : product_rate(dtype, 1024, 0.4);
}

/// Returns the device with which each rank sums.
std::vector<at::Device> reducing_devices() {
  const std::vector<at::Device> devices = accelerators();
  if (devices.size() > 1) return devices;
  return {Placement::host(), Placement::host()};
}

}  // namespace

ReduceRate measure_all_reduce() {
  constexpr int64_t kBlock = int64_t{16} << 20;
  constexpr int kRuns = 3;
  const std::vector<at::Device> devices = reducing_devices();
  ReduceRate result{static_cast<int64_t>(devices.size()), devices.front().str(), 0, ""};
  const auto measure = [&](Communicator& ranks) {
    const at::Device device = devices[static_cast<size_t>(ranks.rank())];
    Tensor block = torch::ones({kBlock / 4}, torch::TensorOptions(torch::kFloat).device(device));
    const auto wait_for_all = [&] {
      wait_for(device);
      ranks.barrier();
    };
    ranks.sum(block);  // the first one connects the ranks
    wait_for_all();
    const auto begin = std::chrono::steady_clock::now();
    for (int run = 0; run < kRuns; ++run) ranks.sum(block);
    wait_for_all();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (ranks.is_root()) result.bytes_per_s = static_cast<double>(kRuns * kBlock) / seconds;
  };
  run_as_ranks(result.ranks, measure, /*device_timeout=*/std::chrono::seconds(30));
  return result;
}

std::vector<CopyRate> measure_copies() {
  const torch::NoGradGuard no_grad;
  std::vector<CopyRate> rates;
  std::vector<Tensor> blocks;
  for (const at::Device device : accelerators())
    blocks.push_back(torch::empty({kBlockBytes}, torch::TensorOptions(torch::kByte).device(device)));
  for (const Tensor& block : blocks) {
    const Tensor host = Placement::staging_buffer(kBlockBytes, block.device());
    rates.push_back(measure_copy(host, block));
    rates.push_back(measure_copy(block, host));
  }
  for (const Tensor& from : blocks)
    for (const Tensor& to : blocks)
      if (from.device() != to.device()) rates.push_back(measure_copy(from, to));
  return rates;
}

ProductRates measure_products() {
  const torch::NoGradGuard no_grad;
  return {product_rate(torch::kFloat), product_rate(torch::kBFloat16)};
}

}  // namespace lancet
