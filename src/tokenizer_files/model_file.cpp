#include "lancet/tokenizer_files/model_file.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/text_file.h"

namespace lancet {

bool has_model_file(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::symlink_status(file, ignored).type() != std::filesystem::file_type::not_found;
}

std::string read_model_file(const std::filesystem::path& file, std::string_view what) {
  constexpr uint64_t kLargest = 512'000'000;  // the largest vocabularies take a tenth of it
  try {
    return load_text(file, kLargest);
  } catch (const FileProblem& problem) {
    throw TokenizerError(cat(what, ": ", file.string(), ": cannot be read: ", problem.what()));
  }
}

}  // namespace lancet
