#include "lancet/edit/statistics_options.h"

#include <cstdlib>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

std::filesystem::path default_cache() {
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder != '\0')
    return std::filesystem::path(folder) / "lancet";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/tmp") / ".cache" / "lancet";
}

/// Documents that models write wander the more the longer they are; see docs/job-file.md.
constexpr int64_t kSelfDocumentTokens = 256;

void refuse_beside(ConfigSection& section, std::string_view what, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (section.has(key)) section.problem(key, cat("has no meaning beside ", what, ": remove one of them"));
}

void parse_import(ConfigSection& section, const std::filesystem::path& base, StatisticsOptions& options) {
  options.from = StatisticsFrom::kImport;
  options.import = section.path("import", base);
  if (options.import.string().find("{}") == std::string::npos)
    section.problem("import", cat("'", options.import.string(), "': expected {} where the layer's number goes"));
  refuse_beside(section, "import, whose moments were taken over other text", {"corpus", "tokens", "document_tokens"});
}

void parse_null_space(ConfigSection& section, const std::filesystem::path& base, StatisticsOptions& options) {
  options.from = StatisticsFrom::kImportedNullSpace;
  options.null_space = section.path("import_null_space", base);
  refuse_beside(section, "import_null_space, which takes the place of all moments",
                {"import", "corpus", "tokens", "document_tokens", "ridge", "save_every_s", "cache"});
}

void parse_text(ConfigSection& section, const std::filesystem::path& base, StatisticsOptions& options) {
  const ConfigTree* corpus = section.raw("corpus");
  if (corpus == nullptr) {
    section.problem("corpus", "is missing: expected a file, or self (text that the model writes), or import: FILES");
  } else if (corpus->kind == ConfigTree::Kind::kScalar && corpus->scalar == kSelfCorpus) {
    options.from = StatisticsFrom::kSelf;
    options.document_tokens = kSelfDocumentTokens;
  } else {
    options.corpus = section.path("corpus", base);
  }
  options.tokens = section.integer("tokens", {.min = 1}, options.tokens);
  options.document_tokens = section.integer("document_tokens", {.min = 2}, options.document_tokens);
}

}  // namespace

StatisticsOptions parse_statistics_options(ConfigSection section, const std::filesystem::path& base) {
  StatisticsOptions options;
  if (section.has("import_null_space")) {
    parse_null_space(section, base, options);
    section.finish();
    return options;
  }
  if (section.has("import"))
    parse_import(section, base, options);
  else
    parse_text(section, base, options);
  options.ridge = section.number("ridge", {.min = 0.0}, options.ridge);
  options.save_every_s = section.number("save_every_s", {.min = 0.0}, options.save_every_s);
  options.cache = section.path("cache", base, default_cache());
  section.finish();
  return options;
}

}  // namespace lancet
