#include "lancet/statistics/statistics_options.h"

#include <algorithm>
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

/// The value of `tokens` that stands for its default.
constexpr std::string_view kAutoTokens = "auto";

bool is_absent_or(const ConfigTree* value, std::string_view word) {
  return value == nullptr || (value->kind == ConfigTree::Kind::kScalar && value->scalar == word);
}

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
  if (is_absent_or(section.raw("corpus"), kSelfCorpus)) {
    options.from = StatisticsFrom::kSelf;
    options.document_tokens = kSelfDocumentTokens;
    section.record("corpus", ConfigTree::text(std::string(kSelfCorpus)));
  } else {
    options.corpus = section.path("corpus", base);
    options.tokens = kMostTokens;
  }
  if (!is_absent_or(section.raw("tokens"), kAutoTokens))
    options.tokens = section.integer("tokens", {.min = 1}, kMostTokens);
  else if (options.tokens)
    section.record("tokens", ConfigTree::number(*options.tokens));
  else
    section.record("tokens", ConfigTree::text(std::string(kAutoTokens)));
  options.document_tokens = section.integer("document_tokens", {.min = 2}, options.document_tokens);
}

}  // namespace

int64_t StatisticsOptions::token_budget(int64_t key_size) const {
  return tokens.value_or(std::clamp(kTokensPerDimension * key_size, kLeastOwnTokens, kMostTokens));
}

int64_t StatisticsOptions::cached_bytes(int64_t key_size) const {
  const int64_t bytes_an_entry = from == StatisticsFrom::kImport ? 4 : 12;
  return bytes_an_entry * key_size * key_size;
}

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
