// What a job's statistics were made of; part of report.json, and what `lancet stats` prints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lancet {

struct LayerStatisticsReport {
  int64_t layer = 0;
  int64_t tokens = 0;
  double mean_diagonal = 0;  ///< trace(C) / n, without the ridge
  bool from_cache = false;   ///< the moments were not made in this run
  bool factor_from_cache = false;
  std::optional<double> null_space_below = {};  ///< threshold of the layer's null space; nullopt: none, or not known
  std::filesystem::path factor_file;            ///< the cached Cholesky factor, null space or spectrum
  std::filesystem::path gradients_file = {};    ///< the cached spectrum of gradients' moments; empty: none
  std::filesystem::path imported_file;          ///< statistics.import: the layer's file; empty: from text
  std::string imported_hash;                    ///< XXH3-128 of its bytes
};

struct StatisticsReport {
  std::vector<LayerStatisticsReport> layers;  ///< edited layers; empty: the editor needs none
  double collect_seconds = 0;                 ///< seconds in which moments were made in this run
  bool corpus_exhausted = false;              ///< the corpus had fewer tokens than asked for
};

}  // namespace lancet
