// `statistics:` of a job: where the second moments of MLP keys come from, and where they are kept.
#pragma once

#include <cstdint>
#include <filesystem>

#include "lancet/core/config_section.h"

namespace lancet {

enum class StatisticsFrom {
  kCorpus,            ///< text of the user
  kSelf,              ///< text that the model itself writes, `corpus: self`
  kImport,            ///< files of memit or EasyEdit
  kImportedNullSpace  ///< projections that AlphaEdit's code computed, instead of moments
};

struct StatisticsOptions {
  StatisticsFrom from = StatisticsFrom::kCorpus;
  std::filesystem::path corpus;      ///< kCorpus: text (a document per line) or .jsonl ("text")
  std::filesystem::path import;      ///< kImport: files with "{}" where the layer's number goes
  std::filesystem::path null_space;  ///< kImportedNullSpace: the file
  int64_t tokens = 1'000'000;        ///< budget, BOS tokens included; not for kImport
  int64_t document_tokens = 2048;    ///< longer documents are cut; kSelf: 256. Never more than the model's positions
  double ridge = 0.0;                ///< added to C, relative to trace(C) / n, before it is factored
  double save_every_s = 30.0;   ///< between saves of a pass under way, for a killed one to go on from; 0: every chunk
  std::filesystem::path cache;  ///< folder of cached covariances and factors

  /// Whether moments are taken over text, rather than imported.
  bool takes_text() const { return from == StatisticsFrom::kCorpus || from == StatisticsFrom::kSelf; }
};

/// `statistics:` of a job; relative paths are taken from `base`.
/// Problems: none of `corpus`, `import` and `import_null_space`; `import` without "{}"; keys that have no meaning
/// beside them.
StatisticsOptions parse_statistics_options(ConfigSection section, const std::filesystem::path& base);

/// The value of `corpus` that stands for the model's own text; a file of that name is ./self.
inline constexpr std::string_view kSelfCorpus = "self";

}  // namespace lancet
