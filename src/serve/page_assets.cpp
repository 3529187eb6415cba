#include "page_assets.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>

#include "lancet/core/built_in_file.h"

namespace lancet {

std::span<const BuiltInFile> serve_assets();  // made by CMake

std::string_view serve_asset(std::string_view name) {
  const auto files = serve_assets();
  const auto found = std::ranges::find(files, name, &BuiltInFile::name);
  if (found == files.end()) throw std::logic_error("no such asset: " + std::string(name));
  return found->text;
}

}  // namespace lancet
