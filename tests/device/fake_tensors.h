// Tensors for the tests of the fake devices.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

namespace lancet::testing {

using at::Tensor;

inline const at::Device kHost(at::kCPU);

inline at::Device fake(int index) { return {at::kPrivateUse1, static_cast<at::DeviceIndex>(index)}; }

/// Returns the same numbers for the same shape and seed.
inline Tensor numbers(at::IntArrayRef shape, uint64_t seed = 1, at::ScalarType dtype = at::kFloat) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return torch::randn(shape, generator, torch::dtype(dtype));
}

}  // namespace lancet::testing
