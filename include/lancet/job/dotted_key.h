// Options of an editor by the names that messages call them: "values.lr".
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "lancet/core/config_tree.h"
#include "lancet/core/strings.h"

namespace lancet {

/// Left to lancet.
inline bool is_auto(const ConfigTree& tree) { return tree.kind == ConfigTree::Kind::kScalar && tree.scalar == "auto"; }

/// Null when absent.
inline const ConfigTree* find_dotted(const ConfigTree& tree, std::string_view key) {
  const ConfigTree* found = &tree;
  for (const std::string& part : split(key, '.'))
    if (found != nullptr) found = found->find(part);
  return found;
}

/// nullopt: absent, or no number.
inline std::optional<double> number_at(const ConfigTree& tree, std::string_view key) {
  const ConfigTree* value = find_dotted(tree, key);
  if (value == nullptr || value->kind != ConfigTree::Kind::kScalar) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(value->scalar.c_str(), &end);
  return end != value->scalar.c_str() && *end == '\0' ? std::optional(number) : std::nullopt;
}

}  // namespace lancet
