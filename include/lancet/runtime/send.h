// Small tensors from the host to where they are needed, without anybody waiting. Large ones: models/tensor_io.h.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// A tensor of the host on `device`. An accelerator gets it from page-locked memory: what runs there next sees it.
Tensor sent_to(at::Device device, const Tensor& values);

}  // namespace lancet
