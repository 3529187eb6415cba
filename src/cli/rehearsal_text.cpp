#include "rehearsal_text.h"

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

std::string peak_text(const PeakBytes& peaks, const std::string& device) {
  for (const auto& [name, bytes] : peaks)
    if (name == device) return bytes_text(static_cast<uint64_t>(bytes));
  return "";
}

std::string stage_table(const RehearsalReport& report) {
  PeakBytes devices;
  for (const RehearsedStage& stage : report.stages) raise_to(devices, stage.cost.peaks);
  std::vector<std::vector<std::string>> rows{{"stage", "took", "whole job"}};
  for (const auto& [device, bytes] : devices) rows[0].push_back("peak " + device);
  for (const RehearsedStage& stage : report.stages) {
    const bool is_part = stage.estimate_s == 0 && !stage.how.empty();
    const std::string estimate = is_part ? "" : (stage.how.empty() ? "" : "~ ") + duration_text(stage.estimate_s);
    rows.push_back({stage.cost.stage, duration_text(stage.cost.seconds), estimate});
    for (const auto& [device, bytes] : devices) rows.back().push_back(peak_text(stage.cost.peaks, device));
  }
  return format_table(rows);
}

}  // namespace

std::string rehearsal_text(const RehearsalReport& report) {
  std::string text = cat("\n", stage_table(report), "\n  ", counted(static_cast<size_t>(report.requests), "request"),
                         ", ", report.model_dtype, " on ", report.devices, ": about ",
                         duration_text(report.estimate_s()), " for the whole job, an estimate:\n");
  for (const RehearsedStage& stage : report.stages)
    if (!stage.how.empty() && stage.estimate_s > 0) text += cat("    ", stage.cost.stage, " → ", stage.how, "\n");
  if (report.together > 0)
    text += cat("  memory: values of ", counted(static_cast<size_t>(report.together), "request"),
                " at a time, as in the job\n");
  for (const std::string& limit : report.limits) text += cat("  not shown: ", limit, "\n");
  return text + "  rehearsed; nothing was written\n";
}

}  // namespace lancet::cli
