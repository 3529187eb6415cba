// Named places in the forward pass where code can observe or replace hidden states. A hook runs on the device of its
// layer; a replacement must be on that device, with the same dtype and shape.
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
  kGateOut,    ///< gate projection, before the activation [B, T, F]; not in layers with experts
  kUpOut,      ///< up projection [B, T, F]; not in layers with experts
  kMlpKey,     ///< input of the down projection [B, T, F]: the "key" of ROME and MEMIT; with experts, of the shape that
               ///< KeyShape describes
  kSharedKey,  ///< input of the down projection of the shared MLP beside experts [B, T, S]; only in layers that have
               ///< one
  kMlpOut,     ///< output of the down projection [B, T, D]
  kBlockOut,   ///< output of the decoder layer, the residual stream [B, T, D]
  // Places inside attention or a mixer.
  kQueryVector,  ///< normed vector from which latent attention computes queries [B, T, query_rank]; only if it has one
  kKeyVector,    ///< normed vector from which it computes keys and values [B, T, rank]
  kMixerKey      ///< input of the output projection of a mixer beside attention [B, T, H * V]
};

struct HookSite {
  HookPoint point = HookPoint::kBlockOut;
  int64_t layer = 0;
  auto operator<=>(const HookSite&) const = default;
};

/// Returns a text such as "layer 3, MLP key".
std::string site_text(HookSite site);

class HookSet {
 public:
  void observe(HookSite site, std::function<void(const Tensor&)> observer);
  void replace(HookSite site, std::function<Tensor(const Tensor&)> replacement);
  /// Ends the pass after this site: later operations are not computed, and run_layers returns an undefined tensor.
  void stop_at(HookSite site) { stop_ = site; }

  const std::optional<HookSite>& stop() const { return stop_; }
  /// Returns the sites with an observer or a replacement, in the order of the layers.
  std::vector<HookSite> sites() const;

  bool stops_at(HookSite site) const { return stop_ == site; }
  /// Whether a hook observes or replaces the value there, or ends the pass there.
  bool touches(HookSite site) const { return stops_at(site) || hooks_.contains(site); }
  bool replaces(HookSite site) const;
  /// Applies the replacements in the order in which they were added, then calls the observers, which see the replaced
  /// value. Throws: PlacementError / std::logic_error that names the site, the expected and the actual value when a
  /// replacement has another device, dtype or shape.
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
