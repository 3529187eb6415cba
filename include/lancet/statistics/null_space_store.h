// Null spaces of covariances, kept on disk: the eigenvectors are computed once per rule.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "lancet/statistics/derived_store.h"
#include "lancet/statistics/null_space.h"

namespace lancet {

/// Returns <cache>/<content key of the moments>.null-space-<threshold>.safetensors, or .null-space-share-<share>.
std::filesystem::path null_space_file(const std::filesystem::path& cache, const std::string& content_key,
                                      const NullSpaceRule& rule);

class NullSpaceStore final : public DerivedStore {
 public:
  NullSpaceStore(MomentSource& moments, const Placement& placement, const ModelConfig& config,
                 std::filesystem::path cache, const NullSpaceRule& rule)
      : DerivedStore(moments, placement, config, std::move(cache)), rule_(rule) {}

  /// Loads the layer's null space on its solve device. Call it after prepare(). Throws: CheckpointError when the cache
  /// file has been damaged since.
  NullSpace load(int64_t layer) const;
  /// Returns NullSpace::below without loading the basis.
  double below(int64_t layer) const;
  std::filesystem::path cache_file(int64_t layer) const override {
    return null_space_file(cache_, moments_.content_key(layer), rule_);
  }

 private:
  void make(int64_t layer) const override;
  const MatrixKind& kind() const override;
  double below_in(const MatrixFile& file) const;

  NullSpaceRule rule_;
};

}  // namespace lancet
