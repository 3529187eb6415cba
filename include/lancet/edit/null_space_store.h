// Null spaces of covariances, kept on disk: the eigenvectors are found once for each threshold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lancet/edit/derived_store.h"
#include "lancet/edit/null_space.h"

namespace lancet {

/// <cache>/<content key of the moments>.null-space-<threshold>.safetensors.
std::filesystem::path null_space_file(const std::filesystem::path& cache, const std::string& content_key,
                                      double threshold);

class NullSpaceStore final : public DerivedStore {
 public:
  /// `threshold`: eigenvalues of C below it are the null space's.
  NullSpaceStore(MomentSource& moments, const Placement& placement, int64_t size, std::filesystem::path cache,
                 double threshold)
      : DerivedStore(moments, placement, size, std::move(cache)), threshold_(threshold) {}

  /// On the layer's solve device; on the host in the cache file's pages: read only. After prepare().
  /// Throws: CheckpointError when the cache file is damaged.
  NullSpace load(int64_t layer) const;
  MomentFacts facts(int64_t layer) const override;
  std::filesystem::path cache_file(int64_t layer) const override {
    return null_space_file(cache_, moments_.content_key(layer), threshold_);
  }

 private:
  void make(int64_t layer) const override;
  void check(int64_t layer) const override { load(layer); }

  double threshold_;
};

}  // namespace lancet
