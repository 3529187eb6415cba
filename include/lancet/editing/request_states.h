// What an editor takes from forward passes over its requests' prompts: keys and hidden states at the lookup tokens.
// Defined in editor.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "lancet/requests/prepared_request.h"
#include "lancet/training/activations.h"

namespace lancet {

/// How the values of one request's contexts become one.
enum class ContextMean {
  kPlain,    ///< the plain prompt's alone
  kGrouped,  ///< half the plain prompt's, half the mean over the others (MEMIT, section 4)
  kFlat      ///< the mean over all (ROME)
};

class EditContext;

/// Keys and hidden states of some requests, asked for layer by layer, upwards, while those layers are edited.
class RequestStates {
 public:
  /// Keeps the states at `layer`'s input: from now on weights below it stay as they are and nothing below it is asked
  /// for, so that what lies there is not run again (LookupStates::keep_from).
  void keep_from(int64_t layer);

  /// Collective. [N, X] f64 on the layer's solve device: the site's value at the lookup token. Throws: NumericError
  /// when one is not finite.
  Tensor collect(HookSite site, ContextMean mean);

  /// Collective. [F, N] f64 on the layer's solve device.
  Tensor collect_keys(int64_t layer, ContextMean mean = ContextMean::kGrouped);

 private:
  friend EditContext;
  RequestStates(const EditContext& context, std::span<const PreparedRequest> requests);

  Tensor mean_of(HookSite site, ContextMean mean);

  const EditContext& context_;
  std::span<const PreparedRequest> requests_;
  LookupStates plain_, others_;  ///< rows of the plain prompts; of the other contexts, request by request
};

}  // namespace lancet
