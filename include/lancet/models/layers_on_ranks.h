// A model whose layers several ranks have: rank 0 asks (LayerPeers), and the rank that has them computes
// (serve_layers).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lancet/models/layers_elsewhere.h"
#include "lancet/models/quantised_linear.h"
#include "lancet/runtime/communicator.h"
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

/// What a rank serves with.
struct LayerService {
  std::vector<DeviceBudget> devices;            ///< this rank's
  std::vector<std::string> ignore_config_keys;  ///< keys that rank 0 ignores too
};

/// Loads, runs and gives what LayerPeers asks for, until rank 0 says that the work is over. Returns what it says with
/// that. Throws: what fails here, after rank 0 has been told that something did; CollectiveError when rank 0 is gone.
int64_t serve_layers(Communicator& ranks, const LayerService& service);

/// Ends serve_layers() on all ranks that are still there, where it returns `code`. On rank 0.
void end_service(RankLinks& links, int64_t code);

}  // namespace lancet
