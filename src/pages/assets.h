// The files of src/pages/assets, which CMake puts into the program.
#pragma once

#include <string_view>

namespace lancet::page {

/// `name`: "page.css". Throws: std::logic_error when there is none.
std::string_view asset(std::string_view name);

}  // namespace lancet::page
