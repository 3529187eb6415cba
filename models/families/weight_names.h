// Names that checkpoints have for a family's tensors.
#pragma once

#include <string>

#include "lancet/models/families.h"

namespace lancet {

/// The family's own name for a tensor that the checkpoint has under one of a set of other names.
std::string own_name(const std::string& name, const PrefixList& names);

}  // namespace lancet
