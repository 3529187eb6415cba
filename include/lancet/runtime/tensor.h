// The one tensor type. Headers include this and no other part of torch (ATen/core/Tensor.h costs 2 s a file,
// torch/torch.h 19 s).
#pragma once

#include <ATen/core/Tensor.h>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lancet/core/dtype.h"

namespace lancet {

using at::Tensor;

/// Throws: CheckpointError for the stored types that no part of a weight can have here (F8_E5M2, unsigned integers).
at::ScalarType to_scalar_type(DType dtype);
/// Throws: std::logic_error for types that safetensors lacks.
DType to_dtype(at::ScalarType type);

/// Positions, as index_select takes them: int64 on `device`.
Tensor to_index(const std::vector<int64_t>& positions, at::Device device);
/// All numbers of a tensor of any type, on any device, in the order of a contiguous one.
std::vector<double> to_doubles(const Tensor& values);

// How torch computes where it has a choice: the same on every machine, whatever the environment says. These switches
// are torch's own and of the whole process.

/// What torch does where it may give up precision, or choose kernels by their speed. All off: what set_numerics() sets.
struct Numerics {
  bool tf32 = false;             ///< products of f32 matrices on GPUs with 10 bits of the mantissa
  bool reduced_sums = false;     ///< partial sums of bf16 and f16 products on GPUs kept in that type
  bool cudnn_attention = false;  ///< cuDNN's attention, which sets up a plan for every new shape: 0.4 s each

  bool operator==(const Numerics&) const = default;
};

/// Returns what torch is set to now.
Numerics numerics();

/// Returns the settings by the names that documents have for them.
std::map<std::string, bool> named(const Numerics& numerics);

/// Turns all of it off. Every CausalLM does so when it is made; programs that compute without one call it first.
void set_numerics();

}  // namespace lancet
