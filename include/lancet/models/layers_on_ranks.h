// A model whose layers are spread over several ranks: rank 0 sends requests (LayerPeers), and the rank that holds the
// layers computes (serve_layers).
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
  /// `links` must outlive everything that this object creates.
  explicit LayerPeers(RankLinks& links) : links_(links) {}

  /// Returns the devices of the other ranks, in the order of the ranks. Throws: CollectiveError if a rank runs another
  /// version of lancet.
  static std::vector<DeviceBudget> devices(RankLinks& links);

  /// Starts loading on each rank what `placement` has there. This discards what an earlier call loaded.
  void begin_load(const Checkpoint& checkpoint, const Placement& placement, const QuantiseRule& rule);
  /// Waits until the ranks have loaded. Throws: ConfigError when a rank's files hold other numbers.
  void finish_load(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement);

  /// Differentiable with respect to `h_BTD` and to the values that hooks observe and substitute. Throws:
  /// CollectiveError when the rank fails, as the other functions do.
  Tensor run(const Tensor& h_BTD, const SequenceInfo& sequence, const PassElsewhere& pass, const HookSet& hooks,
             const HeldPass* held) override;
  std::shared_ptr<const HeldPass> hold(const SequenceInfo& sequence, const PassElsewhere& pass) override;
  const Tensor& weight(int64_t rank, WeightId id, at::Device device) override;
  void set_weight(int64_t rank, WeightId id, Tensor value) override;
  bool is_finite(int64_t rank, WeightId id) override;

  /// Releases what the rank keeps under this number. Thread-safe; the rank is told later.
  void release(int64_t rank, int64_t number);
  RankLinks::Talk talk_with(int64_t rank);

 private:
  RankLinks& links_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<int64_t>> released_;  ///< numbers by rank
  std::map<WeightId, Tensor> weights_;                ///< copies that were requested
};

/// The devices and options of a rank that serves layers.
struct LayerService {
  std::vector<DeviceBudget> devices;            ///< this rank's
  std::vector<std::string> ignore_config_keys;  ///< keys that rank 0 ignores too
};

/// Answers the requests of LayerPeers until rank 0 says that the work is over. Returns the code that rank 0 sends with
/// that message. Throws: the errors of this rank, after it has told rank 0 about them; CollectiveError when rank 0 is
/// gone.
int64_t serve_layers(Communicator& ranks, const LayerService& service);

/// Ends serve_layers() on all ranks that are still alive; there it returns `code`. Call it on rank 0.
void end_service(RankLinks& links, int64_t code);

}  // namespace lancet
