// Eigenvectors and eigenvalues of second moments, kept on disk beside them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lancet/statistics/curvature.h"
#include "lancet/statistics/derived_store.h"

namespace lancet {

/// Returns <cache>/<content key of the moments>.spectrum.safetensors.
std::filesystem::path spectrum_file(const std::filesystem::path& cache, const std::string& content_key);

class SpectrumStore final : public DerivedStore {
 public:
  SpectrumStore(MomentSource& moments, const Placement& placement, const ModelConfig& config,
                std::filesystem::path cache, MomentSide side)
      : DerivedStore(moments, placement, config, std::move(cache)), side_(side) {}

  /// Loads the layer's spectrum on its solve device. Do not write to it. Call it after prepare(). Throws:
  /// CheckpointError when the cache file has been damaged since.
  MomentSpectrum load(int64_t layer) const;
  std::filesystem::path cache_file(int64_t layer) const override {
    return spectrum_file(cache_, moments_.content_key(layer));
  }

 private:
  void make(int64_t layer) const override;
  const MatrixKind& kind() const override;
  KeyShape shape_of(int64_t layer) const override { return moment_shape(config_, side_, layer); }

  MomentSide side_;
};

}  // namespace lancet
