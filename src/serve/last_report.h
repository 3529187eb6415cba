// Keeps the report of the last edit in a file, so that the page shows it after a restart, too.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/journal/journal.h"

namespace lancet {

/// Name of the file in ServeOptions::dir.
inline constexpr const char* kLastReportFile = "last-report.json";

/// Throws: CheckpointError if the disk refuses.
void keep_last_report(const std::filesystem::path& folder, const Journal& edits, const std::string& report);

/// Returns the kept report; empty if there is none, or if the current edits are not those that it measured. Throws:
/// exceptions of the JSON reader if the file is damaged.
std::string find_last_report(const std::filesystem::path& folder, const Journal& edits);

}  // namespace lancet
