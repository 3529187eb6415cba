#include "lancet/edit/statistics_options.h"

#include <cstdlib>

namespace lancet {
namespace {

std::filesystem::path default_cache() {
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder != '\0')
    return std::filesystem::path(folder) / "lancet";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/tmp") / ".cache" / "lancet";
}

}  // namespace

StatisticsOptions parse_statistics_options(ConfigSection section, const std::filesystem::path& base) {
  const StatisticsOptions defaults;
  StatisticsOptions options;
  options.corpus = section.path("corpus", base);
  options.tokens = section.integer("tokens", {.min = 1}, defaults.tokens);
  options.document_tokens = section.integer("document_tokens", {.min = 2}, defaults.document_tokens);
  options.ridge = section.number("ridge", {.min = 0.0}, defaults.ridge);
  options.save_every_s = section.number("save_every_s", {.min = 0.0}, defaults.save_every_s);
  options.cache = section.path("cache", base, default_cache());
  section.finish();
  return options;
}

}  // namespace lancet
