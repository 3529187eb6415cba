#include "export_folder.h"

#include "edit/edit_checks.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

void check_export_folder(const std::filesystem::path& out, IfExists if_exists, const std::filesystem::path& source) {
  std::error_code error;
  if (if_exists == IfExists::kError && std::filesystem::exists(out, error))
    throw ConfigError(cat("--out: ", out.string(), ": exists already: choose another name, or --replace it"));
  check_output_target(out, if_exists, kExportOutput);
  check_apart(out, source);
}

}  // namespace lancet
