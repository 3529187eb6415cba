// Tables for other programs. Defined in report_page.cpp.
#pragma once

#include <string>

#include "page.h"

namespace lancet::page {

/// Returns a line for each metric.
std::string metrics_csv(const Json& report);
/// Returns a line for each request.
std::string requests_csv(const Json& report);

}  // namespace lancet::page
