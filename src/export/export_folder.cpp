#include "export_folder.h"
#include "lancet/io/output_folder.h"

namespace lancet {

void check_export_folder(const std::filesystem::path& out, IfExists if_exists, const std::filesystem::path& source) {
  check_new_output(out, if_exists, kExportOutput);
  check_apart(out, source);
}

}  // namespace lancet
