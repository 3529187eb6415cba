// The files of src/report/assets as CMake puts them into the program.
#pragma once

#include <string_view>

namespace lancet::page {

std::string_view page_css();
std::string_view plot_css();
std::string_view page_js();

}  // namespace lancet::page
