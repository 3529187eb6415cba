// Passes tensors to Python as DLPack. The memory is shared, and exists as long as either side needs it. The binary
// links no torch binding of a Python version.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet::python {

/// Returns a capsule "dltensor", which torch.from_dlpack() can take once; None for an undefined tensor.
nanobind::object to_capsule(const Tensor& tensor);

/// Returns a capsule of numbers that `owner` keeps alive.
nanobind::object to_capsule(const std::vector<float>& numbers, std::shared_ptr<const void> owner);

}  // namespace lancet::python
