// Operations that GPUs do in any order: with the same numbers they may give other bits the next time.
#pragma once

#include <ATen/core/ivalue.h>

#include <span>
#include <string>

namespace lancet::testing {

/// Throws: c10::Error where the result of operation `name` ("aten::index_add_") with these arguments, which lie on the
/// host, depends on the order in which a GPU takes their elements. Two numbers make one sum in either order, and so do
/// equal ones; three do not.
void check_sum_order(const std::string& name, std::span<const c10::IValue> arguments);

}  // namespace lancet::testing
