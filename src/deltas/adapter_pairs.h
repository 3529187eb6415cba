// The pairs of an adapter, whatever file they go to.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapter_factors.h"
#include "adapter_modules.h"
#include "lancet/deltas/adapter.h"

namespace lancet {

/// What a module's pair is made from.
struct AdapterPair {
  const LinearModule* module = nullptr;
  std::vector<WeightId> weights = {};  ///< that have a change in it; none: the pair is there for others' sake, zeros
  LowRankDelta factors = {};
  Spectrum spectrum = {};
  int64_t numeric_rank = 0;

  int64_t directions() const { return weights.empty() ? 0 : factors.left_OR.size(1); }
  int64_t needed_rank() const { return std::min(directions(), numeric_rank); }
};

/// A pair's factors in the form in which they are written.
struct StoredPair {
  Tensor a_RI = {};
  Tensor b_OR = {};
};

/// All of an adapter, in memory.
struct MadeAdapter {
  std::vector<LinearModule> modules = {};
  std::vector<AdapterPair> pairs = {};  ///< pairs of some of them, in model order
  int64_t rank = 1;
  std::vector<StoredPair> stored = {};  ///< one for each pair

  /// Reports on the modules that change.
  AdapterReport report() const;
};

/// Who reads the adapter.
struct AdapterReader {
  std::string_view name;  ///< "PEFT"
  /// Why it cannot load a change of the weight; empty: it can.
  std::string (*why_not)(const ModelConfig& config, const WeightSpec& spec);
};

/// Throws: as write_adapter().
MadeAdapter make_adapter(const ModelConfig& config, std::span<const WeightChanges> changes,
                         const AdapterOptions& options, const AdapterReader& reader);

}  // namespace lancet
