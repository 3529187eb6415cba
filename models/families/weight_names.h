// The names that checkpoints have for a family's tensors.
#pragma once

#include <string>

#include "lancet/models/families.h"

namespace lancet {

/// Returns the family's own name for a tensor that the checkpoint has under another name.
std::string own_name(const std::string& name, const PrefixList& names);

}  // namespace lancet
