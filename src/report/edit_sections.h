// The sections of the page about one edit. Those that have nothing to show are empty.
#pragma once

#include <string>
#include <vector>

#include "html.h"

namespace lancet::page {

/// A run and what is read of it once.
struct EditView {
  const RunDocument& run;
  Json report;
  std::vector<MetricFigures> metrics;
  std::vector<MetricFigures> elsewhere;  ///< what editing cost besides its requests
};

std::string header_html(const EditView& view);
Section summary_section(const EditView& view);
Section metrics_section(const EditView& view);
Section elsewhere_section(const EditView& view);
Section examples_section(const EditView& view);
Section stream_section(const EditView& view);
Section losses_section(const EditView& view);
Section cost_section(const EditView& view);
Section requests_section(const EditView& view);
/// The rows that are not in the page, and all rows' numbers, as JSON for the script.
std::string requests_data(const EditView& view);
Section journal_section(const EditView& view);
Section job_section(const EditView& view);

std::string metrics_csv(const EditView& view);
std::string requests_csv(const EditView& view);

/// `text` as HTML, its beginning marked where it is the target.
std::string marked(const std::string& text, const std::string& target);

}  // namespace lancet::page
