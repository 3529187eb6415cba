#include "assets.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "lancet/core/built_in_file.h"

namespace lancet {

std::span<const BuiltInFile> report_assets();  // made by CMake

namespace page {

std::string_view asset(std::string_view name) {
  const auto files = report_assets();
  const auto found = std::ranges::find(files, name, &BuiltInFile::name);
  if (found == files.end()) throw std::logic_error("no such asset: " + std::string(name));
  return found->text;
}

}  // namespace page
}  // namespace lancet
