// Tests that run once for each device that LANCET_GPU_DEVICES names, and are skipped with words where there is none.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "lancet/runtime/devices.h"

namespace lancet::testing {

/// "cuda:0,cuda:1" of LANCET_GPU_DEVICES, else all accelerators that torch can use; {"none"} without any.
std::vector<std::string> device_names();
/// "cuda_0".
std::string device_label(const ::testing::TestParamInfo<std::string>& info);

class OnDevice : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  at::Device device() const { return at::Device(GetParam()); }
};

/// What results on a device may differ by from those that the host computes in f64 of the same numbers. TF32 in place
/// of f32 has 1e-7.
struct Precision {
  at::ScalarType type;
  double most_nmse;
};
inline constexpr Precision kPrecisions[] = {{at::kDouble, 1e-24}, {at::kFloat, 1e-10}, {at::kBFloat16, 1e-4}};

/// Returns the same numbers for the same shape and seed: on the host, f64.
Tensor numbers(at::IntArrayRef shape, uint64_t seed);

/// `ours` of `inputs` on `device` in each type, with the gradients of all inputs under one random gradient, against the
/// same in f64 on the host. `ours` gets its inputs in their type, on their device.
void expect_as_on_the_host(at::Device device, const std::function<Tensor(const std::vector<Tensor>&)>& ours,
                           const std::vector<Tensor>& inputs);

/// Runs `work` to its end. Ends the process with `words` when that takes longer: what hangs cannot be taken back.
void run_within(std::chrono::seconds limit, const std::string& words, const std::function<void()>& work);

}  // namespace lancet::testing

#define LANCET_ON_EACH_DEVICE(SUITE)                                                               \
  INSTANTIATE_TEST_SUITE_P(Devices, SUITE, ::testing::ValuesIn(::lancet::testing::device_names()), \
                           ::lancet::testing::device_label)
