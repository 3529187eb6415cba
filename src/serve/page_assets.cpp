#include "page_assets.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>

#include "lancet/core/built_in_file.h"
#include "lancet/pages/report_page.h"

namespace lancet {

std::span<const BuiltInFile> serve_assets();  // made by CMake

std::string serve_asset(std::string_view name) {
  if (name == "charts.js") return fact_chart_script();
  if (name == "charts.css") return fact_chart_style();
  const auto files = serve_assets();
  const auto found = std::ranges::find(files, name, &BuiltInFile::name);
  if (found == files.end()) throw std::logic_error("no such asset: " + std::string(name));
  return std::string(found->text);
}

}  // namespace lancet
