// Values that somebody gives for an option elsewhere than in a job: as a flag of the command line, as a keyword of
// Python.
#pragma once

#include <string>

#include "lancet/spec/option.h"

namespace lancet {

/// Reads `value` as the option would be read in a job. Returns what is wrong: "expected ..., got ..."; empty: nothing.
std::string given_problem(const AnyOption& option, const ConfigTree& value);

}  // namespace lancet
