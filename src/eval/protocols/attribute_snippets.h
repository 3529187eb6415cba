// Reference texts of the CounterFact protocol: attribute_snippets.json of the data set.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lancet {

/// A text about a subject that has the attribute.
struct Snippet {
  std::string subject;
  std::string text;
};

/// Snippets by the data set's ids of relation and target ("P103", "Q1860").
using AttributeSnippets = std::map<std::pair<std::string, std::string>, std::vector<Snippet>>;

/// Reads a JSON list of {relation_id, target_id, samples: [{name, text}]}. Throws: ConfigError that names the entry.
AttributeSnippets read_attribute_snippets(const std::filesystem::path& path);

}  // namespace lancet
