// Parses `null_space_below` of methods that act in a null space.
#pragma once

#include "lancet/editor_parts/automatic_options.h"

namespace lancet {

NullSpaceRule parse_null_space_rule(ConfigSection& editor);

}  // namespace lancet
