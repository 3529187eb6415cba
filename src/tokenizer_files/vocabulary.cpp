#include "lancet/tokenizer_files/vocabulary.h"

#include <limits>
#include <unordered_set>

#include "lancet/core/strings.h"

namespace lancet {

Vocabulary parse_vocabulary(const JsonNode& node) {
  if (!node.is_object()) node.fail("expected an object");
  Vocabulary vocabulary;
  std::unordered_set<TokenId> ids(node.value().size());
  vocabulary.reserve(node.value().size());
  for (const auto& [piece, value] : node.value().items()) {
    const JsonNode id = node.at(piece);
    if (id.integer() > std::numeric_limits<int32_t>::max()) id.fail("an id above 2^31");
    if (!ids.insert(id.integer()).second) id.fail(cat("the id ", id.integer(), " has two pieces"));
    vocabulary.emplace(piece, id.integer());
  }
  return vocabulary;
}

std::optional<std::pair<std::string, std::string>> parse_merge_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) return std::nullopt;
  return std::pair(std::string(line.substr(0, space)), std::string(line.substr(space + 1)));
}

bool is_merges_version(std::string_view line) { return line.starts_with("#version"); }

}  // namespace lancet
