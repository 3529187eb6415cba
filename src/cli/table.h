// Plain text tables for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lancet/eval/metrics.h"
#include "lancet/runtime/memory_watch.h"

namespace lancet::cli {

/// Rows of cells in aligned columns; the first column to the left, the others to the right. Widths count UTF-8
/// characters.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// "99.0" from 0.99; "n/a" without a value.
std::string percent_text(std::optional<double> share);

/// A metric's mean: shares in percent, anything else with its unit.
std::string metric_text(const MetricRow& row, std::optional<double> mean);

/// "cpu 1.2 GB, cuda:0 30.5 GB".
std::string peaks_text(const PeakBytes& peaks);

/// One line, cut to `width` characters with "…".
std::string one_line(std::string text, size_t width);

}  // namespace lancet::cli
