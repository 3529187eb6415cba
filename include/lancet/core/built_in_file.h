// A file that CMake embeds in the program (cmake/EmbedFiles.cmake).
#pragma once

#include <span>
#include <string_view>

namespace lancet {

struct BuiltInFile {
  std::string_view name;  ///< name without its folder: "page.css"
  std::string_view text;
};

}  // namespace lancet
