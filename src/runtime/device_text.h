// What messages call a device of this machine. Defined in devices.cpp.
#pragma once

#include <string>

#include "lancet/runtime/tensor.h"

namespace lancet {

/// "cpu", "cuda:0"; "cuda:0 (GPU 3)" where CUDA_VISIBLE_DEVICES makes the machine's GPU 3 the process's 0.
std::string device_text(at::Device device);

}  // namespace lancet
