// Where exports go.
#pragma once

#include <filesystem>

#include "lancet/io/output_folder.h"

namespace lancet {

inline constexpr const char* kExportRecord = "export.json";
inline constexpr OutputKind kExportOutput{"export"};

/// Throws: ConfigError for an output that is there, or that is `source`, lies in it or holds it.
void check_export_folder(const std::filesystem::path& out, IfExists if_exists, const std::filesystem::path& source);

}  // namespace lancet
