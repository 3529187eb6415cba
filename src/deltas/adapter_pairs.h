// The pairs of an adapter, for any file format.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapter_factors.h"
#include "adapter_modules.h"
#include "lancet/deltas/adapter.h"

namespace lancet {

/// The sources of a module's pair.
struct AdapterPair {
  const LinearModule* module = nullptr;
  /// The weights with a change in it. Empty: the pair has zeros, and is only there because others need it.
  std::vector<WeightId> weights = {};
  LowRankDelta factors = {};
  Spectrum spectrum = {};
  int64_t numeric_rank = 0;

  int64_t directions() const { return weights.empty() ? 0 : factors.left_OR.size(1); }
  int64_t needed_rank() const { return std::min(directions(), numeric_rank); }
};

/// A pair's factors as they are written.
struct StoredPair {
  Tensor a_RI = {};
  Tensor b_OR = {};
};

/// A whole adapter in memory.
struct MadeAdapter {
  std::vector<LinearModule> modules = {};
  std::vector<AdapterPair> pairs = {};  ///< pairs of some of the modules, in model order
  int64_t rank = 1;
  std::vector<StoredPair> stored = {};  ///< one for each pair

  /// Reports on the modules that change.
  AdapterReport report() const;
};

/// The program that reads the adapter.
struct AdapterReader {
  std::string_view name;  ///< "PEFT"
  /// Returns why the program cannot load a change of the weight; empty if it can.
  std::string (*why_not)(const ModelConfig& config, const WeightSpec& spec);
};

/// Throws: as write_adapter().
MadeAdapter make_adapter(const ModelConfig& config, std::span<const WeightChanges> changes,
                         const AdapterOptions& options, const AdapterReader& reader);

}  // namespace lancet
