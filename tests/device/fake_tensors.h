// Tensors for the tests of the fake devices.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <functional>
#include <string>

namespace lancet::testing {

using at::Tensor;

inline const at::Device kHost(at::kCPU);

inline at::Device fake(int index) { return {at::kPrivateUse1, static_cast<at::DeviceIndex>(index)}; }

/// Returns the same numbers for the same shape and seed.
inline Tensor numbers(at::IntArrayRef shape, uint64_t seed = 1, at::ScalarType dtype = at::kFloat) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::randn(shape, generator, torch::dtype(dtype));
}

/// Returns what an operation that is refused is told; empty: it is none.
inline std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

}  // namespace lancet::testing
