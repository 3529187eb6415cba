// Cholesky factors of covariances, kept on disk beside them: a covariance is factored once for each ridge, and not read
// again. Stored whole (half of it zeros), not as a packed triangle: in that form a solve on the CPU reads the page
// cache itself, and pages that hold only zeros are never read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lancet/edit/derived_store.h"

namespace lancet {

/// <cache>/<content key of the moments>.factor-<ridge>.safetensors.
std::filesystem::path factor_file(const std::filesystem::path& cache, const std::string& content_key, double ridge);

class FactorStore final : public DerivedStore {
 public:
  /// `ridge`: added to C, relative to trace(C) / n.
  FactorStore(MomentSource& moments, const Placement& placement, int64_t size, std::filesystem::path cache,
              double ridge)
      : DerivedStore(moments, placement, size, std::move(cache)), ridge_(ridge) {}

  /// L [F, F] f64, column-major, on the layer's solve device; C + ridge = L L^T. On the host it lies in the cache
  /// file's pages: read only. After prepare(). Throws: CheckpointError when the cache file is damaged.
  Tensor load(int64_t layer) const;
  MomentFacts facts(int64_t layer) const override;
  std::filesystem::path cache_file(int64_t layer) const override {
    return factor_file(cache_, moments_.content_key(layer), ridge_);
  }

 private:
  void make(int64_t layer) const override;
  void check(int64_t layer) const override { load(layer); }

  double ridge_;
};

}  // namespace lancet
