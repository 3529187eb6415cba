// The only tensor type. Headers include this file and no other part of torch, because ATen/core/Tensor.h takes 2 s per
// file to compile, and torch/torch.h takes 19 s.
#pragma once

#include <ATen/core/Tensor.h>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lancet/core/dtype.h"

namespace lancet {

using at::Tensor;

/// Converts a stored type. Throws: CheckpointError for types that no part of a weight can have here (F8_E5M2, unsigned
/// integers).
at::ScalarType to_scalar_type(DType dtype);
/// Converts to a stored type. Throws: std::logic_error for types that safetensors lacks.
DType to_dtype(at::ScalarType type);

/// Returns the positions as an index for index_select: int64 on `device`.
Tensor to_index(const std::vector<int64_t>& positions, at::Device device);
/// Returns all numbers of a tensor of any type, on any device, in contiguous order.
std::vector<double> to_doubles(const Tensor& values);

// How torch computes where it has a choice. lancet makes the same choice on every machine, whatever the environment
// says. These switches belong to torch and apply to the whole process.

/// Where torch may give up precision, or choose kernels by their speed. set_numerics() turns all of it off.
struct Numerics {
  bool tf32 = false;             ///< products of f32 matrices on GPUs use 10 bits of the mantissa
  bool reduced_sums = false;     ///< partial sums of bf16 and f16 products on GPUs stay in that type
  bool cudnn_attention = false;  ///< use cuDNN's attention, which sets up a plan for every new shape: 0.4 s each

  bool operator==(const Numerics&) const = default;
};

/// Returns torch's current settings.
Numerics numerics();

/// Returns the settings by the names that the documents use.
std::map<std::string, bool> named(const Numerics& numerics);

/// Turns all of it off. Every CausalLM does this when it is made; programs that compute without a CausalLM must call it
/// first.
void set_numerics();

}  // namespace lancet
