// Options of an editor by the names that messages call them: "values.lr".
#pragma once

#include <string>
#include <string_view>

#include "lancet/core/config_tree.h"
#include "lancet/core/strings.h"

namespace lancet {

/// Null when absent.
inline const ConfigTree* find_dotted(const ConfigTree& tree, std::string_view key) {
  const ConfigTree* found = &tree;
  for (const std::string& part : split(key, '.'))
    if (found != nullptr) found = found->find(part);
  return found;
}

}  // namespace lancet
