// Values by the names that an option has for them.
#pragma once

#include <cstddef>
#include <string_view>

namespace lancet {

/// A value by the name that an option has for it.
template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

/// Whether the option's names after the first, which stands for no value, are those of `values`.
template <typename Value, size_t kNames, size_t kValues>
constexpr bool are_named_so(const std::string_view (&names)[kNames], const Named<Value> (&values)[kValues]) {
  if (kNames != kValues + 1) return false;
  for (size_t i = 0; i < kValues; ++i)
    if (names[i + 1] != values[i].name) return false;
  return true;
}

}  // namespace lancet
