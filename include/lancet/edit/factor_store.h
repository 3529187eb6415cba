// Cholesky factors of covariances, kept on disk beside them: a covariance is factored once for each ridge, and not read
// again. Stored whole (half of it zeros), not as a packed triangle: in that form a solve on the CPU reads the page
// cache itself, and pages that hold only zeros are never read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>

#include "lancet/edit/moment_source.h"

namespace lancet {

/// What is known of a layer's factor.
struct FactorFacts {
  int64_t tokens = 0;        ///< that the moments were taken over
  double mean_diagonal = 0;  ///< trace(C) / n, without the ridge
};

/// <cache>/<content key of the moments>.factor-<ridge>.safetensors.
std::filesystem::path factor_file(const std::filesystem::path& cache, const std::string& content_key, double ridge);

class FactorStore {
 public:
  /// `moments` and `placement` outlive the store. `size`: of C. `ridge`: added to C, relative to trace(C) / n.
  FactorStore(MomentSource& moments, const Placement& placement, int64_t size, std::filesystem::path cache,
              double ridge);

  /// Collective: factors those of `layers` (ascending) that root's cache lacks, one at a time. Factors are root's
  /// alone, and so is everything below. Throws: CheckpointError; NumericError when a covariance is not definite, with
  /// the ridge that works.
  void prepare(std::span<const int64_t> layers, Communicator& communicator);

  /// L [F, F] f64, column-major, on the layer's solve device; C + ridge = L L^T. On the host it lies in the cache
  /// file's pages: read only. After prepare(). Throws: CheckpointError when the cache file is damaged.
  Tensor load(int64_t layer) const;
  FactorFacts facts(int64_t layer) const;

  /// Whether the last prepare() found the layer's factor.
  bool from_cache(int64_t layer) const { return !factored_.contains(layer); }
  /// Whether the last prepare() did without making the layer's moments.
  bool moments_from_cache(int64_t layer) const { return from_cache(layer) || moments_.from_cache(layer); }
  std::filesystem::path cache_file(int64_t layer) const;
  /// Of the last prepare(): seconds in which moments were made.
  double collect_seconds() const { return collect_seconds_; }

 private:
  void factor(int64_t layer) const;

  MomentSource& moments_;
  const Placement& placement_;
  int64_t size_;
  std::filesystem::path cache_;
  double ridge_;
  std::set<int64_t> factored_;  // by the last prepare()
  double collect_seconds_ = 0;
};

}  // namespace lancet
