// Values under dotted keys of a document, "values.lr".
#pragma once

#include <string_view>

#include "lancet/core/config_tree.h"

namespace lancet {

/// Null when absent.
const ConfigTree* find_dotted(const ConfigTree& tree, std::string_view key);

/// Makes the maps between.
void set_dotted(ConfigTree& tree, std::string_view key, ConfigTree value);

}  // namespace lancet
