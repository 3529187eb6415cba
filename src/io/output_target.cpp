#include "output_target.h"

#include <system_error>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/io/output_folder.h"

namespace lancet {

namespace fs = std::filesystem;

fs::path resolve_target(const fs::path& target) {
  std::error_code error;
  const fs::path absolute = target.empty() ? target : fs::absolute(target, error);
  fs::path resolved = fs::weakly_canonical(absolute, error);
  if (error) resolved = absolute.lexically_normal();
  if (!resolved.has_filename()) resolved = resolved.parent_path();
  if (!resolved.has_filename())
    throw ConfigError(cat("'", target.string(),
                          "': expected a folder to write to, got a path without a name; "
                          "name a new folder"));
  return resolved;
}

fs::path sibling_of(const fs::path& target, std::string_view suffix) {
  return fs::path(cat(resolve_target(target).string(), suffix));
}

}  // namespace lancet
