#include "last_report.h"

#include "desk_json.h"
#include "lancet/core/strict_json.h"
#include "lancet/io/files.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLastReportFormat = "lancet-serve-report-1";

/// Changes whenever an edit is added or removed.
Json standing_edits(const Journal& edits) {
  return {{"batches", edits.batches().size()},
          {"undone", edits.undone().size()},
          {"changes", edits.batches().empty() ? "" : edits.batches().back().changes}};
}

}  // namespace

void keep_last_report(const fs::path& folder, const Journal& edits, const std::string& report) {
  const Json kept{{"format", kLastReportFormat}, {"edits", standing_edits(edits)}, {"report", report}};
  write_text_file(folder / kLastReportFile, dump_line(kept) + "\n");
}

std::string find_last_report(const fs::path& folder, const Journal& edits) {
  const fs::path path = folder / kLastReportFile;
  if (!fs::exists(path)) return "";
  const Json kept = parse_ordered_json(read_text_file(path, "report of the last edit"));
  if (kept.at("format") != kLastReportFormat || kept.at("edits") != standing_edits(edits)) return "";
  return kept.at("report");
}

}  // namespace lancet
