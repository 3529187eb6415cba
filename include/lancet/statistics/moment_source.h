// A source of second moments of MLP keys or of gradients: a pass over text, or files of another tool.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lancet/statistics/covariance.h"

namespace lancet {

/// Which second moments: of the inputs of a layer's down projection, or of a loss's gradients at its outputs.
enum class MomentSide { kKeys, kGradients };

/// Returns the sizes of a layer's moments.
KeyShape moment_shape(const ModelConfig& config, MomentSide side, int64_t layer);

class MomentSource {
 public:
  virtual ~MomentSource() = default;
  /// Returns a key of everything that the layer's moments depend on, without computing them. On root.
  virtual std::string content_key(int64_t layer) const = 0;
  /// Collective. Does the work that all `layers` (ascending) share; load() needs it. Throws: CheckpointError.
  virtual void prepare(std::span<const int64_t> layers, Communicator& communicator) = 0;
  /// Loads the layer's moments, on the host or on the layer's solve device, into memory that nobody else uses. On root.
  /// Throws: CheckpointError.
  virtual Covariance load(int64_t layer) const = 0;
  /// Whether the last prepare() found the layer's moments instead of making them.
  virtual bool from_cache(int64_t layer) const = 0;
};

}  // namespace lancet
