#include "lancet/export/output_place_check.h"

#include <filesystem>
#include <system_error>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/gguf/gguf_file.h"
#include "lancet/gguf/gguf_head.h"

namespace lancet {
namespace {

bool is_written_by_lancet(const std::filesystem::path& file) {
  try {
    return GgufFile::open(file).has(kGgufVersionKey);
  } catch (const CheckpointError&) {
    return false;
  }
}

}  // namespace

void check_output_place(const OutputPlace& place, IfExists policy, const std::filesystem::path& model) {
  check_apart(place, model);
  std::error_code error;
  if (!place.model_file || !std::filesystem::exists(*place.model_file, error)) return;
  const std::string where = cat("output.dir: ", place.model_file->string());
  if (policy == IfExists::kError)
    throw ConfigError(cat(where, ": exists already: choose another name, or output.replace: true"));
  if (!is_written_by_lancet(*place.model_file))
    throw ConfigError(cat(where, ": lancet did not write this file and does not replace it: choose another name"));
}

}  // namespace lancet
