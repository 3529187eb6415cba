// The files of src/serve/assets, which CMake puts into the program.
#pragma once

#include <string>
#include <string_view>

namespace lancet {

/// `name`: "serve.css". Throws: std::logic_error if there is no such file.
std::string serve_asset(std::string_view name);

}  // namespace lancet
