// Second moments of MLP keys, or of gradients, wherever they come from: a pass over text, or another tool's files.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lancet/statistics/covariance.h"

namespace lancet {

/// Whose second moments: of what a layer's down projection reads, or of a loss's gradients at what it gives.
enum class MomentSide { kKeys, kGradients };

/// The sizes of a layer's moments.
KeyShape moment_shape(const ModelConfig& config, MomentSide side, int64_t layer);

class MomentSource {
 public:
  virtual ~MomentSource() = default;
  /// Made of everything that the layer's moments depend on; known without making them. On root.
  virtual std::string content_key(int64_t layer) const = 0;
  /// Collective: does what is done for all `layers` (ascending) together; load() needs it. Throws: CheckpointError.
  virtual void prepare(std::span<const int64_t> layers, Communicator& communicator) = 0;
  /// Loads the layer's moments, on the host or on the layer's solve device; nobody else uses its memory. On root.
  /// Throws: CheckpointError.
  virtual Covariance load(int64_t layer) const = 0;
  /// Whether the last prepare() found the layer's moments instead of making them.
  virtual bool from_cache(int64_t layer) const = 0;
};

}  // namespace lancet
