// What people read of a report: report.json as a page and as tables. Everything comes from the JSON and the text of
// job.yaml, so that older reports can be rendered again; a key that is not there is not shown.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lancet {

/// One run, as its output folder has it.
struct RunDocument {
  std::string label = {};     ///< name in a comparison
  std::string json = {};      ///< report.json; empty: the run failed
  std::string job_yaml = {};  ///< the resolved job; empty: not known
  std::string failure = {};   ///< why there is no report.json
  std::string series = {};    ///< shared by runs that differ in the seed alone, which are shown as one; empty: none
};

struct ReportFiles {
  std::string html = {};          ///< report.html: one file that needs nothing else
  std::string metrics_csv = {};   ///< a line for each metric
  std::string requests_csv = {};  ///< a line for each request

  /// Each by its name in the output folder.
  std::array<std::pair<const char*, std::string_view>, 3> named() const {
    return {{{"report.html", html}, {"metrics.csv", metrics_csv}, {"requests.csv", requests_csv}}};
  }
};

/// Throws: ConfigError when the JSON is no report of lancet.
ReportFiles render_report(const RunDocument& run);

/// Several runs beside each other, and what their jobs differ in. Runs on other models or requests come into tables
/// of their own, and metrics of another protocol into rows of their own. Throws: ConfigError as above.
std::string render_comparison(std::span<const RunDocument> runs, std::string_view title);

/// Returns a script for other pages: `factChart(report)` gives elements, the report's chart of facts by metric, or
/// null.
std::string fact_chart_script();
/// Returns what the elements look like.
std::string fact_chart_style();

/// Whether the text is a page that lancet wrote, which may be written over.
bool is_own_page(std::string_view html);

}  // namespace lancet
