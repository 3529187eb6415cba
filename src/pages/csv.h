// Tables for other programs.
#pragma once

#include <string>

#include "document.h"

namespace lancet::page {

/// A line for each metric.
std::string metrics_csv(const Json& report);
/// A line for each request.
std::string requests_csv(const Json& report);

}  // namespace lancet::page
