// Cholesky factors of covariances, kept on disk beside them: a covariance is factored once for each ridge, and not read
// again. Read into memory rather than mapped, since a mapped file that is cut ends the process, and since what is used
// is then what has been checked; stored as a packed triangle, which takes half the disk and half the time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lancet/statistics/derived_store.h"

namespace lancet {

/// <cache>/<content key of the moments>.factor-<ridge>.safetensors.
std::filesystem::path factor_file(const std::filesystem::path& cache, const std::string& content_key, double ridge);

class FactorStore final : public DerivedStore {
 public:
  /// `ridge`: added to C, relative to trace(C) / n.
  FactorStore(MomentSource& moments, const Placement& placement, const ModelConfig& config, std::filesystem::path cache,
              double ridge)
      : DerivedStore(moments, placement, config, std::move(cache)), ridge_(ridge) {}

  /// L [F, F] f64, column-major, on the layer's solve device; C + ridge = L L^T. After prepare(). Throws:
  /// CheckpointError when the cache file has been damaged since.
  Tensor load(int64_t layer) const;
  std::filesystem::path cache_file(int64_t layer) const override {
    return factor_file(cache_, moments_.content_key(layer), ridge_);
  }

 private:
  void make(int64_t layer) const override;
  const MatrixKind& kind() const override;

  double ridge_;
};

}  // namespace lancet
