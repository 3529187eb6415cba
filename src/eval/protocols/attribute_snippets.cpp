#include "attribute_snippets.h"

#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/json_file.h"

namespace lancet {

AttributeSnippets read_attribute_snippets(const std::filesystem::path& path) {
  using Json = nlohmann::json;
  const Json list = read_json_file(path, "snippets");
  if (!list.is_array())
    throw ConfigError(cat(path.string(),
                          ": expected a JSON list of {relation_id, target_id, samples: [{name, text}]}: ",
                          "CounterFact's attribute_snippets.json"));
  AttributeSnippets snippets;
  for (size_t i = 0; i < list.size(); ++i) {
    try {
      const Json& entry = list[i];
      std::vector<Snippet>& texts =
          snippets[{entry.at("relation_id").get<std::string>(), entry.at("target_id").get<std::string>()}];
      for (const Json& sample : entry.at("samples"))
        texts.push_back({sample.at("name").get<std::string>(), sample.at("text").get<std::string>()});
    } catch (const Json::exception& error) {
      throw ConfigError(cat(path.string(), ": entry ", i,
                            ": expected {relation_id, target_id, samples: [{name, text}]}, ",
                            "all of them text: ", error.what()));
    }
  }
  return snippets;
}

}  // namespace lancet
