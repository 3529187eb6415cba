#include "dotted_keys.h"

#include <string>
#include <utility>

namespace lancet {

const ConfigTree* find_dotted(const ConfigTree& tree, std::string_view key) {
  const size_t dot = key.find('.');
  const ConfigTree* first = tree.find(key.substr(0, dot));
  return first == nullptr || dot == std::string_view::npos ? first : find_dotted(*first, key.substr(dot + 1));
}

void set_dotted(ConfigTree& tree, std::string_view key, ConfigTree value) {
  const size_t dot = key.find('.');
  const std::string first(key.substr(0, dot));
  if (dot != std::string_view::npos) {
    const ConfigTree* below = tree.find(first);
    ConfigTree map = below == nullptr ? ConfigTree::map() : *below;
    set_dotted(map, key.substr(dot + 1), std::move(value));
    value = std::move(map);
  }
  tree.set(first, std::move(value));
}

}  // namespace lancet
