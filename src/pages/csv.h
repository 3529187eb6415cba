// Tables for other programs. Defined in report_page.cpp.
#pragma once

#include <string>

#include "page.h"

namespace lancet::page {

/// A line for each metric.
std::string metrics_csv(const Json& report);
/// A line for each request.
std::string requests_csv(const Json& report);

}  // namespace lancet::page
