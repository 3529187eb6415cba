// The report of the last edit in a file, so that the page shows it after a restart too.
#pragma once

#include <filesystem>
#include <string>

#include "lancet/journal/journal.h"

namespace lancet {

/// File below ServeOptions::dir.
inline constexpr const char* kLastReportFile = "last-report.json";

/// Throws: CheckpointError when the disk refuses.
void keep_last_report(const std::filesystem::path& folder, const Journal& edits, const std::string& report);

/// Returns the report as it was kept. Empty: none was, or other edits stand by now than those that it was measured
/// with. Throws: what the reader of JSON does for a file that is damaged.
std::string find_last_report(const std::filesystem::path& folder, const Journal& edits);

}  // namespace lancet
