// The name of a device in messages. Defined in devices.cpp.
#pragma once

#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Returns "cpu", "cuda:0"; "cuda:0 (GPU 3)" if CUDA_VISIBLE_DEVICES makes the machine's GPU 3 the process's GPU 0.
std::string device_text(at::Device device);

}  // namespace lancet
