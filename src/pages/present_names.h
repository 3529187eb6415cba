// Keys of a report that had another name in an earlier version, whose reports are read as well.
// Defined in report_page.cpp.
#pragma once

#include "page.h"

namespace lancet::page {

/// Returns the report with the present names beside the old ones.
Json with_present_names(Json report);

}  // namespace lancet::page
