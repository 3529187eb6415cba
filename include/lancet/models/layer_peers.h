// The layers of a model that other ranks have, as rank 0 uses them: it asks, and the rank that has them computes.
// models/remote/layer_server.cpp answers.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lancet/models/layers_elsewhere.h"
#include "lancet/models/quantised_linear.h"
#include "lancet/runtime/devices.h"
#include "lancet/runtime/rank_links.h"

namespace lancet {

class LayerPeers final : public LayersElsewhere, public std::enable_shared_from_this<LayerPeers> {
 public:
  /// `links` outlives all that is made of this.
  explicit LayerPeers(RankLinks& links) : links_(links) {}

  /// The devices of the other ranks, in the order of ranks. Throws: CollectiveError for another version of lancet.
  static std::vector<DeviceBudget> devices(RankLinks& links);

  /// Has each of them begin to load what `placement` has there. What an earlier call loaded is gone.
  void begin_load(const Checkpoint& checkpoint, const Placement& placement, const QuantiseRule& rule);
  /// Waits for them. Throws: ConfigError where their files have other numbers.
  void finish_load(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement);

  /// Differentiable in `h_BTD` and in what hooks watch and put in a value's place. Throws: CollectiveError when the
  /// rank fails, as the others do.
  Tensor run(const Tensor& h_BTD, const SequenceInfo& sequence, const PassElsewhere& pass, const HookSet& hooks,
             const HeldPass* held) override;
  std::shared_ptr<const HeldPass> hold(const SequenceInfo& sequence, const PassElsewhere& pass) override;
  const Tensor& weight(int64_t rank, WeightId id, at::Device device) override;
  void set_weight(int64_t rank, WeightId id, Tensor value) override;
  bool is_finite(int64_t rank, WeightId id) override;

  /// Lets go of what the rank keeps under this number. From any thread; the rank hears it later.
  void release(int64_t rank, int64_t number);
  RankLinks::Talk talk_with(int64_t rank);

 private:
  RankLinks& links_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<int64_t>> released_;  ///< numbers by rank
  std::map<WeightId, Tensor> weights_;                ///< copies that were asked for
};

}  // namespace lancet
