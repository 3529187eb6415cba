#include "lancet/spec/statistics_options.h"

#include <algorithm>
#include <cstdlib>

#include "lancet/core/strings.h"
#include "lancet/spec/read_option.h"

namespace lancet {
namespace {

std::filesystem::path default_cache() {
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder != '\0')
    return std::filesystem::path(folder) / "lancet";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/tmp") / ".cache" / "lancet";
}

/// The value of `tokens` that means the default.
constexpr std::string_view kAutoTokens = "auto";

bool is_absent_or(const ConfigTree* value, std::string_view word) {
  return value == nullptr || (value->kind == ConfigTree::Kind::kScalar && value->scalar == word);
}

/// Reads a path that stands for the files of all layers.
std::filesystem::path read_pattern(ConfigSection& section, const PathOption& option,
                                   const std::filesystem::path& base) {
  std::filesystem::path pattern = read(section, option, base);
  if (pattern.string().find("{}") == std::string::npos)
    section.problem(option.key, cat("'", pattern.string(), "': expected {} where the layer's number goes"));
  return pattern;
}

void parse_import(ConfigSection& section, const std::filesystem::path& base, StatisticsOptions& options) {
  options.from = StatisticsFrom::kImport;
  options.import = read_pattern(section, StatisticsSpec::kImport, base);
  if (section.has(StatisticsSpec::kImportGradients.key))
    options.import_gradients = read_pattern(section, StatisticsSpec::kImportGradients, base);
  refuse_replaced(section, StatisticsSpec::kImport, "whose moments were taken over other text");
}

void parse_null_space(ConfigSection& section, const std::filesystem::path& base, StatisticsOptions& options) {
  options.from = StatisticsFrom::kImportedNullSpace;
  options.null_space = read(section, StatisticsSpec::kImportNullSpace, base);
  refuse_replaced(section, StatisticsSpec::kImportNullSpace, "which takes the place of all moments");
}

void parse_text(ConfigSection& section, const std::filesystem::path& base, StatisticsOptions& options) {
  constexpr std::string_view kTokens = StatisticsSpec::kTokens.key;
  if (is_absent_or(section.raw(StatisticsSpec::kCorpus.key), kSelfCorpus)) {
    options.from = StatisticsFrom::kSelf;
    options.document_tokens = StatisticsSpec::kSelfDocumentTokens;
    section.record(StatisticsSpec::kCorpus.key, ConfigTree::text(std::string(kSelfCorpus)));
  } else {
    options.corpus = read(section, StatisticsSpec::kCorpus, base);
    options.tokens = kMostTokens;
  }
  if (!is_absent_or(section.raw(kTokens), kAutoTokens))
    options.tokens = section.integer(kTokens, StatisticsSpec::kTokens.range, kMostTokens);
  else if (options.tokens)
    section.record(kTokens, ConfigTree::number(*options.tokens));
  else
    section.record(kTokens, ConfigTree::text(std::string(kAutoTokens)));
  options.document_tokens = section.integer(StatisticsSpec::kDocumentTokens.key, StatisticsSpec::kDocumentTokens.range,
                                            options.document_tokens);
}

}  // namespace

int64_t StatisticsOptions::token_budget(int64_t least_tokens) const {
  return tokens.value_or(std::clamp(kTokensPerDimension * least_tokens, kLeastOwnTokens, kMostTokens));
}

StatisticsOptions parse_statistics_options(ConfigSection section, const std::filesystem::path& base) {
  StatisticsOptions options;
  if (section.has(StatisticsSpec::kImportNullSpace.key)) {
    parse_null_space(section, base, options);
    section.finish();
    return options;
  }
  if (section.has(StatisticsSpec::kImportGradients.key) && !section.has(StatisticsSpec::kImport.key))
    section.problem(StatisticsSpec::kImportGradients.key,
                    "has a meaning beside import alone: gradients go with the keys of the same text");
  if (section.has(StatisticsSpec::kImport.key))
    parse_import(section, base, options);
  else
    parse_text(section, base, options);
  options.ridge = read(section, StatisticsSpec::kRidge);
  options.save_every_s = read(section, StatisticsSpec::kSaveEvery);
  options.cache = read(section, StatisticsSpec::kCache, base, default_cache());
  section.finish();
  return options;
}

}  // namespace lancet
