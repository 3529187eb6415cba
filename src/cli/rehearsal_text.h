// What `lancet edit --rehearse` prints.
#pragma once

#include <string>

#include "lancet/run/rehearsal.h"

namespace lancet::cli {

std::string rehearsal_text(const RehearsalReport& report);

}  // namespace lancet::cli
