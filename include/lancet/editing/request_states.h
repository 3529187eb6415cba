// The keys and hidden states at the lookup tokens, which an editor takes from forward passes over its requests'
// prompts. Defined in editor.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "lancet/requests/prepared_request.h"
#include "lancet/training/activations.h"

namespace lancet {

/// How the values of one request in its contexts are averaged.
enum class ContextMean {
  kPlain,    ///< only the plain prompt's value
  kGrouped,  ///< the mean of the plain prompt's value and the mean over the other contexts (MEMIT, section 4)
  kFlat      ///< the mean over all contexts (ROME)
};

class EditContext;

/// The keys and hidden states of some requests. The editor asks for them layer by layer, upwards, while it edits those
/// layers.
class RequestStates {
 public:
  /// Keeps the states at `layer`'s input, so that the layers below are not run again (LookupStates::keep_from). From
  /// now on, weights below it must not change and nothing below it may be asked for.
  void keep_from(int64_t layer);

  /// Collective. Returns the site's value at the lookup token, [N, X] f64 on the layer's solve device. Throws:
  /// NumericError if a value is not finite.
  Tensor collect(HookSite site, ContextMean mean);

  /// Collective. Returns the keys, [F, N] f64 on the layer's solve device.
  Tensor collect_keys(int64_t layer, ContextMean mean = ContextMean::kGrouped);

 private:
  friend EditContext;
  RequestStates(const EditContext& context, std::span<const PreparedRequest> requests);

  Tensor mean_of(HookSite site, ContextMean mean);

  const EditContext& context_;
  std::span<const PreparedRequest> requests_;
  LookupStates plain_, others_;  ///< rows of the plain prompts, and of the other contexts, request by request
};

}  // namespace lancet
