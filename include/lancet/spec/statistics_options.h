// `statistics:` of a job as values: where the second moments of MLP keys come from, and where they are kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "lancet/core/config_section.h"
#include "lancet/spec/statistics_spec.h"

namespace lancet {

enum class StatisticsFrom {
  kCorpus,            ///< text of the user
  kSelf,              ///< text that the model itself writes, `corpus: self`
  kImport,            ///< files of memit or EasyEdit
  kImportedNullSpace  ///< projections that AlphaEdit's code computed, instead of moments
};

struct StatisticsOptions {
  StatisticsFrom from = StatisticsFrom::kCorpus;
  std::filesystem::path corpus;            ///< kCorpus: text (a document per line) or .jsonl ("text")
  std::filesystem::path import;            ///< kImport: files with "{}" where the layer's number goes
  std::filesystem::path import_gradients;  ///< kImport: files likewise, of gradients; empty: none
  std::filesystem::path null_space;        ///< kImportedNullSpace: the file
  std::optional<int64_t> tokens;  ///< budget, BOS tokens included; nullopt (kSelf): by token_budget(); not for kImport
  /// Longer documents are cut; kSelf: 256. Never more than the model's positions.
  int64_t document_tokens = *StatisticsSpec::kDocumentTokens.fallback;
  double ridge = *StatisticsSpec::kRidge.fallback;  ///< added to C, relative to trace(C) / n, before it is factored
  /// Seconds between saves of a pass under way, for a killed one to go on from; 0: every chunk.
  double save_every_s = *StatisticsSpec::kSaveEvery.fallback;
  std::filesystem::path cache;  ///< folder of cached covariances and factors

  /// `tokens`, or by default kTokensPerDimension times `least_tokens` (ModelConfig), from kLeastOwnTokens to
  /// kMostTokens.
  int64_t token_budget(int64_t least_tokens) const;

  /// Whether moments are taken over text, rather than imported.
  bool takes_text() const { return from == StatisticsFrom::kCorpus || from == StatisticsFrom::kSelf; }
};

/// Tokens of a corpus that is a file, unless the job says otherwise; and the most that a model writes by default.
inline constexpr int64_t kMostTokens = 1'000'000;
/// What is sampled is then off by less than the model's own text differs from real text (docs/job-file.md).
inline constexpr int64_t kTokensPerDimension = 4;
inline constexpr int64_t kLeastOwnTokens = 3'000;

/// `statistics:` of a job, which may be absent: text that the model writes; relative paths are taken from `base`.
/// Problems: `import` without "{}"; keys that have no meaning beside `import` and `import_null_space`.
StatisticsOptions parse_statistics_options(ConfigSection section, const std::filesystem::path& base);

/// The value of `corpus` that stands for the model's own text; a file of that name is ./self.
inline constexpr std::string_view kSelfCorpus = "self";

}  // namespace lancet
