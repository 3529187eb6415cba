// Named places in the forward pass where work on the hidden states can be watched or changed.
// A hook runs on the device of its layer; what it gives back must lie there, in the same dtype and shape.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lancet/runtime/tensor.h"

namespace lancet {

enum class HookPoint : uint8_t {
  kBlockIn,    ///< input of the decoder layer [B, T, D]
  kAttnIn,     ///< input of the query, key and value projections, after the norm [B, T, D]
  kAttnKey,    ///< input of the attention's out projection: all heads' results [B, T, H * C]
  kAttnOut,    ///< output of the attention's out projection [B, T, D]
  kMlpIn,      ///< input of gate and up, after the norm [B, T, D]
  kGateOut,    ///< gate projection, before the activation [B, T, F]; not of layers with experts
  kUpOut,      ///< up projection [B, T, F]; not of layers with experts
  kMlpKey,     ///< input of the down projection [B, T, F]: the "key" of ROME and MEMIT; of experts as KeyShape says
  kSharedKey,  ///< input of the down projection of the MLP beside experts [B, T, S]; of layers that have one
  kMlpOut,     ///< output of the down projection [B, T, D]
  kBlockOut,   ///< output of the decoder layer, the residual stream [B, T, D]
  // within a layer's first part
  kQueryVector,  ///< normed vector that latent attention makes queries of [B, T, query_rank]; where it has one
  kKeyVector,    ///< the one that it makes keys and values of [B, T, rank]
  kMixerKey      ///< input of the out projection of a mixer beside attention [B, T, H * V]
};

struct HookSite {
  HookPoint point = HookPoint::kBlockOut;
  int64_t layer = 0;
  auto operator<=>(const HookSite&) const = default;
};

/// "layer 3, MLP key".
std::string site_text(HookSite site);

class HookSet {
 public:
  void observe(HookSite site, std::function<void(const Tensor&)> observer);
  void replace(HookSite site, std::function<Tensor(const Tensor&)> replacement);
  /// The pass ends after this site: nothing later is computed and run_layers returns an undefined tensor.
  void stop_at(HookSite site) { stop_ = site; }

  const std::optional<HookSite>& stop() const { return stop_; }
  /// The places where something watches or changes, in the order of the layers.
  std::vector<HookSite> sites() const;

  bool stops_at(HookSite site) const { return stop_ == site; }
  /// Whether something watches, changes or ends the pass there.
  bool touches(HookSite site) const { return stops_at(site) || hooks_.contains(site); }
  bool replaces(HookSite site) const;
  /// Replacements in the order they were added, then the observers, which see the value that goes on.
  /// Throws: PlacementError / std::logic_error naming the site, what was expected and what came when a replacement is
  /// on another device, or of another dtype or shape.
  Tensor apply(HookSite site, Tensor value) const;

 private:
  struct Hooks {
    std::vector<std::function<void(const Tensor&)>> observers;
    std::vector<std::function<Tensor(const Tensor&)>> replacements;
  };
  std::map<HookSite, Hooks> hooks_;
  std::optional<HookSite> stop_;
};

}  // namespace lancet
