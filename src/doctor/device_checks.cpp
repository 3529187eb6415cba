#include "lancet/doctor/device_checks.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <functional>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/distributed/thread_ranks.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/memory.h"
#include "lancet/runtime/problem.h"
#include "lancet/runtime/tensor.h"
#include "split_model.h"
#include "timing.h"

namespace lancet {
namespace {

constexpr int64_t kCheckedBytes = int64_t{32} << 20;

/// Returns bytes that depend on their position and on the seed, on the host.
Tensor byte_pattern(int64_t seed) {
  constexpr int64_t kOdd = 0x1e3779b97f4a7c15;  // its multiples change every bit
  return torch::arange(kCheckedBytes / 8, torch::kLong).add_(seed).mul_(kOdd).view(torch::kByte);
}

/// Describes how `found` differs; empty if it does not.
std::string byte_difference(const Tensor& found, const Tensor& expected) {
  const Tensor places = (found != expected).nonzero();
  if (places.size(0) == 0) return "";
  const auto place = places[0].item<int64_t>();
  const auto byte = [&](const Tensor& bytes) { return static_cast<int>(bytes[place].item<uint8_t>()); };
  return cat(places.size(0), " of ", expected.numel(), " bytes are wrong, the first at ", place, ": ", byte(found),
             ", expected ", byte(expected));
}

/// Returns an empty text if the numbers are as near to the exact ones as their type allows.
std::string number_difference(const Tensor& found, const Tensor& exact, double most_nmse) {
  const Tensor precise = found.to(Placement::host(), torch::kDouble);
  const double nmse = ((precise - exact).square().sum() / exact.square().sum()).item<double>();
  if (nmse <= most_nmse) return "";  // also false for NaN
  return cat("NMSE ", nmse, " against the host's, expected at most ", most_nmse);
}

/// Returns what a check finds, or why it failed.
std::string failure_of(const std::function<std::string()>& check) {
  try {
    return check();
  } catch (const std::exception& error) {
    const std::string words = problem_of(error).message;
    return words.substr(0, words.find('\n'));
  }
}

std::vector<std::string> names_of(std::span<const at::Device> devices) {
  std::vector<std::string> names;
  for (const at::Device device : devices) names.push_back(device.str());
  return names;
}

DeviceCheck check_bytes(at::Device device) {
  DeviceCheck check{DeviceCheckKind::kBytes, {device.str()}, "", 0};
  check.failure = failure_of([&] {
    const Tensor bytes = byte_pattern(device.index());
    Tensor there = torch::empty_like(bytes, bytes.options().device(device));
    there.copy_(bytes);
    return byte_difference(there.clone().to(Placement::host()), bytes);
  });
  return check;
}

DeviceCheck check_products(at::Device device) {
  DeviceCheck check{DeviceCheckKind::kProducts, {device.str()}, "", 0};
  check.failure = failure_of([&] {
    at::Generator generator = at::detail::createCPUGenerator(/*seed_val=*/1);
    for (const auto& [type, most_nmse] : {std::pair{torch::kFloat, 1e-10}, std::pair{torch::kBFloat16, 1e-4}}) {
      const Tensor a = torch::randn({512, 512}, generator, torch::kFloat).to(type);
      const Tensor exact = torch::mm(a.to(torch::kDouble), a.to(torch::kDouble));
      const Tensor there = a.to(device);
      const std::string difference = number_difference(torch::mm(there, there), exact, most_nmse);
      if (!difference.empty()) return cat(at::toString(type), ": ", difference);
    }
    return std::string();
  });
  return check;
}

DeviceCheck check_pair(at::Device from, at::Device to) {
  DeviceCheck check{DeviceCheckKind::kPair, {from.str(), to.str()}, "", 0};
  check.failure = failure_of([&] {
    const Tensor bytes = byte_pattern(1000 * from.index() + to.index());
    const Tensor here = bytes.to(from);
    const Tensor there = torch::zeros_like(bytes, bytes.options().device(to));
    const auto copy = [&] {
      there.copy_(here, /*non_blocking=*/true);
      wait_for(from);
      wait_for(to);
    };
    check.bytes_per_s = static_cast<double>(kCheckedBytes) * rate(copy, 0.05);
    return byte_difference(there.to(Placement::host()), bytes);
  });
  return check;
}

DeviceCheck check_split_model(std::span<const at::Device> devices) {
  DeviceCheck check{DeviceCheckKind::kSplitModel, names_of(devices), "", 0};
  check.failure = failure_of([&] {
    const std::vector<at::Device> host(devices.size(), Placement::host());
    return number_difference(split_model_logits(devices), split_model_logits(host).to(torch::kDouble), 1e-9);
  });
  return check;
}

/// Returns an empty text if this rank has the right sum over all ranks. The numbers are whole, so the sum is exact.
std::string sum_over_ranks(Communicator& ranks, at::Device device, double& bytes_per_s) {
  constexpr int64_t kNumbers = int64_t{1} << 20;
  constexpr int kSums = 3;
  const Tensor numbers = torch::arange(kNumbers, torch::kFloat).remainder(251);
  const Tensor own = (numbers * static_cast<double>(ranks.rank() + 1)).to(device);
  Tensor sum = own.clone();
  ranks.sum(sum);  // the first one connects the ranks
  wait_for(device);
  ranks.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kSums; ++i) ranks.sum(sum.copy_(own));
  wait_for(device);
  ranks.barrier();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  bytes_per_s = static_cast<double>(kSums * kNumbers * sum.element_size()) / seconds;
  const Tensor expected = numbers * static_cast<double>(ranks.size() * (ranks.size() + 1) / 2);
  const auto n_wrong = (sum.to(Placement::host()) != expected).sum().item<int64_t>();
  return n_wrong == 0 ? "" : cat(n_wrong, " of ", kNumbers, " sums are wrong on ", device.str());
}

DeviceCheck check_all_reduce(std::span<const at::Device> devices) {
  DeviceCheck check{DeviceCheckKind::kAllReduce, names_of(devices), "", 0};
  check.failure = failure_of([&] {
    std::vector<std::string> failures(devices.size());
    std::vector<double> rates(devices.size());
    run_as_ranks(
        static_cast<int64_t>(devices.size()),
        [&](Communicator& ranks) {
          const auto rank = static_cast<size_t>(ranks.rank());
          failures[rank] = sum_over_ranks(ranks, devices[rank], rates[rank]);
        },
        /*device_timeout=*/std::chrono::seconds(30));
    check.bytes_per_s = *std::ranges::min_element(rates);
    std::erase(failures, "");
    return join(failures);
  });
  return check;
}

}  // namespace

std::vector<at::Device> devices_to_check(const std::string& names) {
  if (names == "all") return accelerators();
  if (names.find('=') != std::string::npos)
    throw ConfigError(cat("--devices: '", names, "': expected all, or names without budgets: cuda:0,cuda:1"));
  std::vector<at::Device> devices;
  for (const DeviceBudget& budget : find_devices(split(names, ',')).devices) devices.push_back(budget.device);
  return devices;
}

std::vector<DeviceCheck> check_devices(std::span<const at::Device> devices) {
  const torch::NoGradGuard no_grad;
  set_numerics();
  std::vector<DeviceCheck> checks;
  for (const at::Device device : devices) checks.push_back(check_bytes(device));
  for (const at::Device device : devices) checks.push_back(check_products(device));
  for (const at::Device from : devices)
    for (const at::Device to : devices)
      if (from != to) checks.push_back(check_pair(from, to));
  if (!devices.empty()) checks.push_back(check_split_model(devices));
  std::vector<at::Device> of_ranks(devices.begin(), devices.end());
  std::erase(of_ranks, Placement::host());
  if (of_ranks.size() > 1) checks.push_back(check_all_reduce(of_ranks));
  return checks;
}

}  // namespace lancet
