#include "lancet/io/json_file.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"

namespace lancet {

nlohmann::json read_json_file(const std::filesystem::path& path, std::string_view what) {
  const std::string text = read_text_file(path, what);
  try {
    return parse_strict_json(text);
  } catch (const JsonProblem& problem) {
    throw ConfigError(cat(what, ": ", path.string(), ": ", problem.what(), "; correct the file"));
  }
}

}  // namespace lancet
