// Covariances kept on disk under a key made of everything that they depend on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lancet/edit/covariance.h"

namespace lancet {

/// Covariances from the cache, or collected and put there.
class StatisticsStore {
 public:
  /// `checkpoint` is where the model's weights came from: its bytes are part of the cache's keys. `cache`: the folder.
  StatisticsStore(const CausalLM& model, const Checkpoint& checkpoint, const CorpusTokens& corpus,
                  std::filesystem::path cache);

  /// Seconds between saves of a pass under way; see PartialSums. 0: after every chunk.
  void save_every(double seconds) { save_every_s_ = seconds; }

  /// In the order of `layers`. A pass that an earlier run was killed in goes on. Throws: CheckpointError when the cache
  /// cannot be written, or holds a damaged file.
  std::vector<Covariance> load(std::span<const int64_t> layers);

  /// Layers of the last load() that came from the cache.
  const std::vector<int64_t>& cached_layers() const { return cached_layers_; }
  /// Cache file of a layer: <cache>/<content key>.safetensors.
  std::filesystem::path cache_file(int64_t layer) const;

 private:
  const CausalLM& model_;
  const Checkpoint& checkpoint_;
  const CorpusTokens& corpus_;
  std::filesystem::path cache_;
  std::string corpus_key_;
  double save_every_s_ = StatisticsOptions().save_every_s;
  std::vector<int64_t> cached_layers_;
};

}  // namespace lancet
