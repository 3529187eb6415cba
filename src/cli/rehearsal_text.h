// What `lancet edit --rehearse` prints.
#pragma once

#include <string>

#include "lancet/studies/rehearsal.h"

namespace lancet::cli {

std::string rehearsal_text(const RehearsalReport& report);

}  // namespace lancet::cli
