// Results as a table for a paper: LaTeX that needs the package booktabs alone.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lancet/pages/report_page.h"

namespace lancet {

/// One run: a row for each metric, before and after. Several: a row for each, a column for each metric; runs of one
/// series are one row with means and standard deviations. Runs that failed have a row without figures.
/// Throws: ConfigError when the JSON is no report of lancet, or the runs are not on the same model and requests.
std::string latex_table(std::span<const RunDocument> runs);

/// The text as LaTeX sets it, whatever characters are in it: none of them is a command. Control characters become
/// blanks.
std::string latex_text(std::string_view text);

}  // namespace lancet
