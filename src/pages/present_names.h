// Keys of reports that had another name in an earlier version. Reports of that version are read, too. Defined in
// report_page.cpp.
#pragma once

#include "page.h"

namespace lancet::page {

/// Returns the report with the present names in addition to the old ones.
Json with_present_names(Json report);

}  // namespace lancet::page
