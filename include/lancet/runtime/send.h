// Copies small tensors from the host to a device without waiting. For large ones: models/tensor_io.h.
#pragma once

#include "lancet/runtime/tensor.h"

namespace lancet {

/// Copies a host tensor to `device`. An accelerator reads it from page-locked memory; work that is queued there
/// afterwards sees the values.
Tensor sent_to(at::Device device, const Tensor& values);

}  // namespace lancet
