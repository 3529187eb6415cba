// The states that a trace restores one by one, and the progress of this work.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "lancet/core/progress.h"
#include "lancet/tracing/causal_trace.h"

namespace lancet {

/// A restored state in a fact's corrupted runs; there is a row for each sample.
struct Restoration {
  size_t fact = 0;  ///< index in the group
  size_t kind = 0;  ///< index in the options
  int64_t token = 0;
  int64_t layer = 0;  ///< the layer in the map
  LayerRange run;     ///< layers from the first one that is changed on
  LayerRange window;  ///< layers whose outputs are restored; empty for a hidden state, which is the rows' input
};

/// Whether some layer of a window has that part.
using HasPart = std::function<bool(TraceKind kind, const LayerRange& window)>;

/// Returns the restorations that can have an effect: from the subject's first token on, with a layer above that reads
/// the state, and with a window in which some layer has the part. Empty `has_part`: every layer has all parts.
std::vector<Restoration> restorations_of(std::span<const TracedFact> facts, const TraceOptions& options,
                                         int64_t n_layers, const HasPart& has_part = {});

/// Counts the restored states. The time left is estimated from the tokens and layers that each restoration runs.
class TraceProgress {
 public:
  /// `facts`: those of this rank. `options` must outlive this object.
  TraceProgress(std::span<const TracedFact> facts, const TraceOptions& options, int64_t n_layers);
  ~TraceProgress() { progress_.finish(); }
  TraceProgress(const TraceProgress&) = delete;
  TraceProgress& operator=(const TraceProgress&) = delete;

  /// Notes that the clean and the corrupted runs of some facts are done, for which `n_states` will be restored.
  void begin_group(std::span<const TracedFact> facts, int64_t n_states);
  /// Notes restored states. May be called from any thread. `facts`: those of the group.
  void put_back(std::span<const Restoration> rows, std::span<const TracedFact> facts);
  void end_group(std::span<const TracedFact> facts) { progress_.advance(std::ssize(facts)); }

 private:
  double cost_of(const Restoration& row, std::span<const TracedFact> facts) const;
  double base_cost(std::span<const TracedFact> facts) const;
  void count(double cost);

  const TraceOptions& options_;
  int64_t n_layers_;
  std::mutex mutex_;  ///< guards the following members
  WorkSoFar work_;    ///< counted in tokens times layers
  Progress progress_;
};

}  // namespace lancet
