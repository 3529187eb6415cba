// Measures how fast this machine copies and multiplies.
#pragma once

#include <vector>

#include "lancet/doctor/machine_facts.h"

namespace lancet {

/// Measures copies from the host to each accelerator and back (page-locked memory), and between each two accelerators.
/// Returns an empty list without accelerators.
std::vector<CopyRate> measure_copies();

/// Measures an all-reduce. Throws: CollectiveError if ranks on this host do not reach each other.
ReduceRate measure_all_reduce();

/// Measures products of square matrices on the host, with torch's threads. Takes less than half a second for each type.
ProductRates measure_products();

}  // namespace lancet
