// The files of data/presets as CMake puts them into the program.
#pragma once

#include <span>
#include <string_view>

namespace lancet {

struct BuiltInFile {
  std::string_view name;  ///< without .yaml
  std::string_view text;
};

std::span<const BuiltInFile> built_in_preset_files();

}  // namespace lancet
