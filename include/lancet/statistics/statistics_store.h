// Second moments that are kept on disk under a key of everything that they depend on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lancet/statistics/moment_source.h"

namespace lancet {

/// The text from which moments are computed. It is identified by its key, and read (or sampled) only when a covariance
/// is missing.
struct StatisticsText {
  std::string content_key;                          ///< on root
  std::function<CorpusTokens(Communicator&)> read;  ///< collective; gives the same text on every rank
  int64_t tokens = 0;       ///< on root: number of tokens; fewer if the text ends early; 0: unknown
  std::string making = {};  ///< description for people of the work before the pass: "the model writes ..."; empty: none
  std::string content = "text";  ///< what the tokens are, for people: "1,600 tokens of text"
};

/// Returns the text of a corpus that root has read. The corpus is borrowed.
StatisticsText text_of(const CorpusTokens& corpus);

/// Hashes of weights by their stored names. A checkpoint has gigabytes, and each of its weights is part of many keys.
using WeightHashes = std::map<std::string, std::string>;

/// Makes the cache keys of moments from everything that they depend on. Moments of gradients depend on every weight.
class CovarianceKeys {
 public:
  /// `checkpoint` and `config` must outlive this; `dtype` and `quantise_rule`: the type and quantisation of the model's
  /// weights.
  CovarianceKeys(std::string text_key, const Checkpoint& checkpoint, const ModelConfig& config, at::ScalarType dtype,
                 QuantiseRule quantise_rule)
      : text_key_(std::move(text_key)),
        checkpoint_(checkpoint),
        config_(config),
        dtype_(dtype),
        quantise_rule_(std::move(quantise_rule)) {}
  /// Takes the hashes of the checkpoint's weights from `hashes` where they are known, and adds others to it.
  void share_hashes(std::shared_ptr<WeightHashes> hashes) { hashes_ = std::move(hashes); }
  std::string of(int64_t layer, MomentSide side = MomentSide::kKeys) const;

 private:
  std::string text_key_;
  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  at::ScalarType dtype_;
  QuantiseRule quantise_rule_;
  std::shared_ptr<WeightHashes> hashes_ = std::make_shared<WeightHashes>();
};

/// Moments of one side, from root's cache, or collected by all ranks and put there by root.
class StatisticsStore final : public MomentSource {
 public:
  /// `checkpoint`: the one from which the model's weights were loaded; its bytes are part of the cache's keys. `cache`:
  /// the folder.
  StatisticsStore(const CausalLM& model, const Checkpoint& checkpoint, StatisticsText text, std::filesystem::path cache,
                  MomentSide side = MomentSide::kKeys);
  StatisticsStore(const CausalLM& model, const Checkpoint& checkpoint, const CorpusTokens& corpus,
                  std::filesystem::path cache, MomentSide side = MomentSide::kKeys)
      : StatisticsStore(model, checkpoint, text_of(corpus), std::move(cache), side) {}

  /// Sets the seconds between saves of a running pass; see PartialSums. 0: after every chunk.
  void save_every(double seconds) { save_every_s_ = seconds; }
  /// As for CovarianceKeys.
  void share_hashes(std::shared_ptr<WeightHashes> hashes) { keys_.share_hashes(std::move(hashes)); }

  /// Returns the key of the layer's moments. On root.
  std::string content_key(int64_t layer) const override { return keys_.of(layer, side_); }
  /// Collects the layers that are missing or damaged in the cache, in one pass. Throws: CheckpointError when the cache
  /// cannot be written.
  void prepare(std::span<const int64_t> layers, Communicator& communicator) override;
  /// Loads the layer's covariance on its solve device. Throws: CheckpointError when the cache file has been damaged
  /// since prepare().
  Covariance load(int64_t layer) const override;
  bool from_cache(int64_t layer) const override { return !collected_.contains(layer); }

  /// Returns the cache file of a layer: <cache>/<content key>.safetensors.
  std::filesystem::path cache_file(int64_t layer) const;

 private:
  void tell_work(size_t n_layers) const;
  KeyShape shape(int64_t layer) const { return moment_shape(model_.config(), side_, layer); }

  const CausalLM& model_;
  StatisticsText text_;
  CovarianceKeys keys_;
  MomentSide side_;
  std::filesystem::path cache_;
  double save_every_s_ = StatisticsOptions().save_every_s;
  std::set<int64_t> collected_;  // by the last prepare()
};

}  // namespace lancet
