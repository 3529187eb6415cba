// How much memory a device has left, and what running out of it looks like.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Free for new tensors: of the host what the system could hand out, of an accelerator what its driver reports. nullopt
/// when the device does not say.
std::optional<int64_t> free_bytes(at::Device device);

/// Whether an exception means that a tensor's memory could not be had, on the host or on an accelerator.
bool is_out_of_memory(const std::exception& error);

}  // namespace lancet
