// Tensors go to Python by DLPack: the same memory, which lives as long as either side needs it. The binary links no
// torch binding of a Python version.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet::python {

/// A capsule "dltensor", which torch.from_dlpack() takes once. An undefined tensor: None.
nanobind::object to_capsule(const Tensor& tensor);

/// Numbers that `owner` keeps, as a capsule of them.
nanobind::object to_capsule(const std::vector<float>& numbers, std::shared_ptr<const void> owner);

}  // namespace lancet::python
