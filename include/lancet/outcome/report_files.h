// A report as files: the JSON, the resolved job, and what people read.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "lancet/io/output_folder.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/pages/report_page.h"

namespace lancet {

inline constexpr OutputKind kEditOutput{"edit", "report.json", "lancet-report-"};

/// Returns the run as `lancet report` finds it in the folder later.
RunDocument run_document(const EditReport& report, const JobConfig& job, std::string label);

/// report.json, job.yaml, report.html, metrics.csv, requests.csv. Throws: CheckpointError when the disk refuses.
void write_report_files(const RunDocument& run, const std::filesystem::path& folder);

/// comparison.html.
void write_comparison(std::span<const RunDocument> runs, const std::string& title, const std::filesystem::path& folder);

}  // namespace lancet
