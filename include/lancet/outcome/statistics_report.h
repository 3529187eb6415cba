// Where a job's statistics came from. It is a part of report.json, and `lancet stats` prints it.
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
  bool from_cache = false;   ///< the moments were not computed in this run
  bool factor_from_cache = false;
  /// Eigenvalue threshold of the layer's null space; nullopt: no null space, or threshold unknown.
  std::optional<double> null_space_below = {};
  std::filesystem::path factor_file;          ///< the cached Cholesky factor, null space or spectrum
  std::filesystem::path gradients_file = {};  ///< the cached spectrum of the gradients' moments; empty: none
  std::filesystem::path imported_file;  ///< the layer's file of statistics.import; empty: the moments are from text
  std::string imported_hash;            ///< XXH3-128 of its bytes
};

struct StatisticsReport {
  std::vector<LayerStatisticsReport> layers;  ///< the edited layers; empty: the editor needs no statistics
  double collect_seconds = 0;                 ///< seconds spent on computing moments in this run
  bool corpus_exhausted = false;              ///< the corpus had fewer tokens than asked for
};

}  // namespace lancet
