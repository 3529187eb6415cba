// A report for people: report.json as a page and as tables. Everything comes from the JSON and the text of job.yaml, so
// older reports can be rendered again. A key that is missing is not shown.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lancet {

/// The files of one run, as its output folder has them.
struct RunDocument {
  std::string label = {};     ///< name in a comparison
  std::string json = {};      ///< report.json; empty: the run failed
  std::string job_yaml = {};  ///< the resolved job; empty: not known
  std::string failure = {};   ///< why there is no report.json
  /// Runs that differ only in the seed have the same series and are shown as one; empty: none.
  std::string series = {};
};

struct ReportFiles {
  std::string html = {};          ///< report.html: one self-contained file
  std::string metrics_csv = {};   ///< a line for each metric
  std::string requests_csv = {};  ///< a line for each request

  /// Returns each file with its name in the output folder.
  std::array<std::pair<const char*, std::string_view>, 3> named() const {
    return {{{"report.html", html}, {"metrics.csv", metrics_csv}, {"requests.csv", requests_csv}}};
  }
};

/// Renders the report. Throws: ConfigError when the JSON is not a report of lancet.
ReportFiles render_report(const RunDocument& run);

/// Renders several runs beside each other, with the differences between their jobs. Runs on other models or requests
/// get tables of their own, and metrics of another protocol get rows of their own. Throws: ConfigError as
/// render_report().
std::string render_comparison(std::span<const RunDocument> runs, std::string_view title);

/// Returns a script for other pages. Its function `factChart(report)` returns the HTML elements of the report's chart
/// of facts by metric, or null.
std::string fact_chart_script();
/// Returns the CSS of these elements.
std::string fact_chart_style();

/// Whether lancet wrote this page, so that it may be overwritten.
bool is_own_page(std::string_view html);

}  // namespace lancet
