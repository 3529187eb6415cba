// How fast this machine copies and multiplies.
#pragma once

#include <vector>

#include "lancet/doctor/machine_facts.h"

namespace lancet {

/// Host to each accelerator and back (page-locked memory), and between each two accelerators. Empty without any.
std::vector<CopyRate> measure_copies();

/// Throws: CollectiveError when ranks on this host do not reach each other.
ReduceRate measure_all_reduce();

/// Products of square matrices on the host, with torch's threads; less than half a second for each type.
ProductRates measure_products();

}  // namespace lancet
