// Results as a table for a paper: LaTeX that needs only the package booktabs.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lancet/pages/report_page.h"

namespace lancet {

/// Returns a table of the runs. One run gives a row for each metric, with values before and after. Several runs give a
/// row for each run and a column for each metric; runs of one series share a row with means and standard deviations.
/// Runs that failed have a row without figures. Throws: ConfigError when the JSON is not a report of lancet, or when
/// the runs are not on the same model and requests.
std::string latex_table(std::span<const RunDocument> runs);

/// Escapes the text so that LaTeX prints every character and reads none as a command. Control characters become blanks.
std::string latex_text(std::string_view text);

}  // namespace lancet
