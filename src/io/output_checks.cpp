#include "lancet/io/output_checks.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet {

namespace fs = std::filesystem;

namespace {

fs::path real_path(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path.lexically_normal() : real;
}

bool is_inside(const fs::path& inner, const fs::path& outer) {
  const fs::path relative = real_path(inner).lexically_relative(real_path(outer));
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

void check_apart(const fs::path& output, const fs::path& model) {
  if (is_inside(output, model) || is_inside(model, output))
    throw ConfigError(cat("output.dir: ", output.string(), ": overlaps the model folder ", model.string(),
                          ": choose another folder"));
}

void check_new_output(const fs::path& out, IfExists if_exists, const OutputKind& kind) {
  std::error_code error;
  if (if_exists == IfExists::kError && fs::exists(out, error))
    throw ConfigError(cat("--out: ", out.string(), ": exists already: choose another name, or --replace it"));
  check_output_target(out, if_exists, kind);
}

void check_cache_outside(const fs::path& cache, const fs::path& folder) {
  if (is_inside(cache, folder))
    throw ConfigError(cat("statistics.cache: ", cache.string(), ": lies in ", folder.string(),
                          ", which the job replaces or removes: choose another folder for one of the two"));
}

}  // namespace lancet
