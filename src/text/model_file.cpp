#include "model_file.h"

#include "lancet/core/error.h"
#include "lancet/core/regular_file.h"
#include "lancet/core/strings.h"

namespace lancet {

bool has_model_file(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::symlink_status(file, ignored).type() != std::filesystem::file_type::not_found;
}

std::string read_model_file(const std::filesystem::path& file, std::string_view what) {
  try {
    return read_regular_file(file);
  } catch (const FileProblem& problem) {
    throw TokenizerError(cat(what, ": ", file.string(), ": cannot be read: ", problem.what()));
  }
}

}  // namespace lancet
