// The states that a trace puts back, one by one, and how far it is with them.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "lancet/core/progress.h"
#include "lancet/tracing/causal_trace.h"

namespace lancet {

/// A state put back in a fact's corrupted runs; a row for each sample.
struct Restoration {
  size_t fact = 0;  ///< index in the group
  size_t kind = 0;  ///< index in the options
  int64_t token = 0;
  int64_t layer = 0;  ///< layer of the map
  LayerRange run;     ///< layers from the first that sees the change on
  LayerRange window;  ///< whose outputs are put back; empty for a hidden state, which is the rows' input
};

/// Whether some layer of a window has that part.
using HasPart = std::function<bool(TraceKind kind, const LayerRange& window)>;

/// Returns the restorations that can change anything: from the subject's first token on, with a layer above to see it,
/// and of a window in which some layer has that part. Empty `has_part`: every layer has all.
std::vector<Restoration> restorations_of(std::span<const TracedFact> facts, const TraceOptions& options,
                                         int64_t n_layers, const HasPart& has_part = {});

/// Counts the states that were put back. The time left is taken from the tokens and layers that each of them runs.
class TraceProgress {
 public:
  /// `facts`: of this rank; `options` outlive this.
  TraceProgress(std::span<const TracedFact> facts, const TraceOptions& options, int64_t n_layers);
  ~TraceProgress() { progress_.finish(); }
  TraceProgress(const TraceProgress&) = delete;
  TraceProgress& operator=(const TraceProgress&) = delete;

  /// The clean and the corrupted runs of some facts are done, of which `n_states` are put back.
  void begin_group(std::span<const TracedFact> facts, int64_t n_states);
  /// From any thread. `facts`: of the group.
  void put_back(std::span<const Restoration> rows, std::span<const TracedFact> facts);
  void end_group(std::span<const TracedFact> facts) { progress_.advance(std::ssize(facts)); }

 private:
  double cost_of(const Restoration& row, std::span<const TracedFact> facts) const;
  double base_cost(std::span<const TracedFact> facts) const;
  void count(double cost);

  const TraceOptions& options_;
  int64_t n_layers_;
  std::mutex mutex_;  ///< guards what follows
  WorkSoFar work_;    ///< places of a token in a layer
  Progress progress_;
};

}  // namespace lancet
